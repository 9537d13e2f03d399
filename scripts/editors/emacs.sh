#!/usr/bin/env bash
# Installs Emacs unless one with Eglot (29 or later) is there, and prints its program's path. On Debian and Ubuntu, as
# root or where sudo asks for no password.
set -euo pipefail

emacs=${EMACS:-emacs}
enough='(kill-emacs (if (>= emacs-major-version 29) 0 1))'
if ! command -v "$emacs" >/dev/null || ! "$emacs" -Q --batch --eval "$enough"; then
  [ -x /usr/bin/apt-get ] || { echo "Emacs 29 or later is needed; set EMACS to its program" >&2; exit 1; }
  root=()
  [ "$(id -u)" = 0 ] || root=(sudo -n)
  from=()
  . /etc/os-release
  if [ "${VERSION_CODENAME:-}" = bookworm ]; then
    # Its own Emacs is 28; backports has 30.
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm-backports main" |
      "${root[@]}" tee /etc/apt/sources.list.d/bookworm-backports.list >/dev/null
    from=(-t bookworm-backports)
  fi
  "${root[@]}" apt-get update -qq >&2
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq -y --no-install-recommends "${from[@]}" emacs-nox >&2
  "$emacs" -Q --batch --eval "$enough" || { echo "the system's Emacs is older than 29" >&2; exit 1; }
fi
command -v "$emacs"
