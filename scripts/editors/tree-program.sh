#!/usr/bin/env bash
# Makes a launcher for a program of an unpacked tree, which runs it with the tree's own loader and libraries, since the
# system's C library may be older. Prints the launcher's path.
#   tree-program.sh TREE PROGRAM [VARIABLE=VALUE...] [-- ARGUMENT...]
set -euo pipefail
tree=$1 program=$2
shift 2
variables=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  variables+=("$1")
  shift
done
[ $# -eq 0 ] || shift
launcher=$tree/$program
loader=$(echo "$tree"/usr/lib64/ld-linux-*.so.* "$tree"/usr/lib/ld-linux-*.so.* | tr ' ' '\n' | grep -v '\*' | head -n 1)
{
  echo '#!/bin/sh'
  for variable in "${variables[@]}"; do
    echo "export ${variable%%=*}='${variable#*=}'"
  done
  printf "exec '%s' --library-path '%s' '%s'" "$loader" "$(echo "$tree"/usr/lib/*-linux-gnu)" "$tree/usr/bin/$program"
  for argument in "$@"; do
    printf " '%s'" "$argument"
  done
  echo ' "$@"'
} >"$launcher"
chmod +x "$launcher"
echo "$launcher"
