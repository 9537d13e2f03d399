#!/usr/bin/env bash
# Unpacks Debian forky's lsp-mode, with what it needs, below .editors/ unless it is there, and prints the folder of its
# packages. Needs mmdebstrap.
set -euo pipefail
cd "$(dirname "$0")/../.."
tree=$(scripts/editors/debian-tree.sh forky elpa-lsp-mode)
echo "$tree/usr/share/emacs/site-lisp/elpa-src"
