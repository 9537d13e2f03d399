#!/usr/bin/env bash
# Unpacks Debian forky's Helix below .editors/ unless it is there, and prints its program's path. Needs mmdebstrap.
set -euo pipefail
cd "$(dirname "$0")/../.."
tree=$(scripts/editors/debian-tree.sh forky hx)
scripts/editors/tree-program.sh "$tree" hx HELIX_RUNTIME="$tree/usr/lib/hx/runtime"
