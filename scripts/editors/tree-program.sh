#!/usr/bin/env bash
# Makes a launcher for a program of an unpacked tree, which runs it with the tree's own loader and libraries, since the
# system's C library may be older. Prints the launcher's path.
#   tree-program.sh TREE PROGRAM [VARIABLE=VALUE...]
set -euo pipefail
tree=$1 program=$2
shift 2
launcher=$tree/$program
loader=$(echo "$tree"/usr/lib64/ld-linux-*.so.* "$tree"/usr/lib/ld-linux-*.so.* | tr ' ' '\n' | grep -v '\*' | head -n 1)
{
  echo '#!/bin/sh'
  for variable in "$@"; do
    echo "export ${variable%%=*}='${variable#*=}'"
  done
  echo "exec '$loader' --library-path '$(echo "$tree"/usr/lib/*-linux-gnu)' '$tree/usr/bin/$program' \"\$@\""
} >"$launcher"
chmod +x "$launcher"
echo "$launcher"
