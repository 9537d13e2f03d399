#!/usr/bin/env bash
# Builds clients/vscode/skyline-lsp.vsix: the extension, bundled into one file, with the server and what it needs.
# VSIX_PYTHONS="3.10 3.11 3.12" adds compiled packages for more than the Python at hand.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v npm >/dev/null || { echo "npm (Node 20 or later) is needed to build the extension" >&2; exit 1; }
.venv/bin/python scripts/editors/bundle_server.py clients/vscode/bundled ${VSIX_PYTHONS:-}
cp LICENSE clients/vscode/LICENSE
cd clients/vscode
# Nothing that is used here needs its installation script.
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
npx --no-install tsc --noEmit
node build.mjs
npx --no-install vsce package --no-dependencies --out skyline-lsp.vsix
