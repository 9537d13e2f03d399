#!/usr/bin/env bash
# Runs package-lint, from Debian, over the Emacs package. Needs mmdebstrap.
set -euo pipefail
cd "$(dirname "$0")/../.."
emacs=$(scripts/editors/emacs.sh)
tree=$(scripts/editors/debian-tree.sh forky elpa-package-lint)
load=()
for folder in "$tree"/usr/share/emacs/site-lisp/elpa-src/*; do
  load+=(-L "$folder")
done
exec "$emacs" -Q --batch "${load[@]}" -l package-lint -f package-lint-batch-and-exit clients/emacs/skyline-lsp.el
