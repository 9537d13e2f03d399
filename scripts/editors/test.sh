#!/usr/bin/env bash
# Drives real editors through the main job: `make test-editors` (Neovim and Emacs), `make test-vscode`.
#   test.sh [neovim] [emacs] [vscode]
# An editor that can't be installed here is an error, not a skipped test. NVIM and EMACS name other programs.
set -euo pipefail
cd "$(dirname "$0")/../.."
for editor in "$@"; do
  case $editor in
  neovim) NVIM=${NVIM:-$(scripts/editors/neovim.sh)} && export NVIM ;;
  emacs) EMACS=$(scripts/editors/emacs.sh) && export EMACS ;;
  vscode) scripts/editors/vsix.sh >&2 && SKYLINE_VSCODE=$(scripts/editors/vscode.sh) && export SKYLINE_VSCODE ;;
  *)
    echo "no test for $editor" >&2
    exit 2
    ;;
  esac
done
names=$*
exec .venv/bin/python -m pytest -m editors -k "${names// / or }" tests/editors
