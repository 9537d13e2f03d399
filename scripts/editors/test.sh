#!/usr/bin/env bash
# Drives real editors through the main job: `make test-editors` (Neovim and Emacs), `make test-vscode`.
#   test.sh [neovim] [eglot] [lsp_mode] [vscode] [helix]
# An editor that can't be installed here is an error, not a skipped test. NVIM, EMACS and HX name other programs.
set -euo pipefail
cd "$(dirname "$0")/../.."
tests=()
for editor in "$@"; do
  case $editor in
  neovim) NVIM=${NVIM:-$(scripts/editors/neovim.sh)} && export NVIM ;;
  eglot) EMACS=$(scripts/editors/emacs.sh) && export EMACS && tests+=(test_the_package) ;;
  lsp_mode) EMACS=$(scripts/editors/emacs.sh) SKYLINE_LSP_MODE=$(scripts/editors/lsp-mode.sh) && export EMACS SKYLINE_LSP_MODE ;;
  vscode) scripts/editors/vsix.sh >&2 && SKYLINE_VSCODE=$(scripts/editors/vscode.sh) && export SKYLINE_VSCODE ;;
  helix) HX=${HX:-$(scripts/editors/helix.sh)} && export HX ;;
  *)
    echo "no test for $editor" >&2
    exit 2
    ;;
  esac
  tests+=("test_$editor")
done
exec .venv/bin/python -m pytest -m editors -k "$(printf ' or %s' "${tests[@]}" | cut -c 5-)" tests/editors
