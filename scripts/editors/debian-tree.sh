#!/usr/bin/env bash
# Unpacks packages of a Debian suite, with what they depend on, below .editors/, and prints the folder.
# Nothing is installed in the system. Needs mmdebstrap.
#   debian-tree.sh SUITE PACKAGE...
set -euo pipefail
cd "$(dirname "$0")/../.."
suite=$1
shift
tree=$PWD/.editors/$suite-$(IFS=-; echo "$*")
if [ ! -e "$tree/.complete" ]; then
  command -v mmdebstrap >/dev/null || { echo "mmdebstrap is needed for this; on Debian: apt install mmdebstrap" >&2; exit 1; }
  rm -rf "$tree"
  mkdir -p .editors
  mmdebstrap --quiet --variant=extract --include="$(IFS=,; echo "$*")" \
    --aptopt='Acquire::Check-Valid-Until "false"' "$suite" "$tree" http://deb.debian.org/debian >&2
  touch "$tree/.complete"
fi
echo "$tree"
