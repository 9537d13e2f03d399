"""Who may talk to the page's server: the browser that was given its address, and no other page or machine.

The server runs what its user's editor can do (edit a file, run the project's code), so every request must name the
secret, come to a loopback name (a page whose own name was rebound to 127.0.0.1 does not) and come from the page
itself. The secret stands in the path, not in a cookie: cookies of 127.0.0.1 go to every port of the machine, and an
editor's embedded page, being third-party there, would not get them.
"""

import hmac
import secrets
from collections.abc import Mapping, Sequence

EMBEDDERS: Sequence[str] = ("'self'", "vscode-webview:", "vscode-file:")
"""Sources that may show the page in a frame. VS Code's webview is two frames deep in its window."""


class Guard:
    """The rules for one server."""

    def __init__(self, port: int, *, embedders: Sequence[str] = EMBEDDERS, token: str | None = None) -> None:
        """`embedders` are sources of the Content-Security-Policy's frame-ancestors."""
        self.token = token if token is not None else secrets.token_urlsafe(32)
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        self._policy = "; ".join(
            (
                "default-src 'none'",
                "script-src 'self'",
                "style-src 'self'",
                "img-src 'self' data:",
                # 'self' covers web sockets in the newer browsers only.
                "connect-src 'self' " + " ".join(f"ws://{host}" for host in self._hosts),
                "base-uri 'none'",
                "form-action 'none'",
                f"frame-ancestors {' '.join(embedders)}",
                "require-trusted-types-for 'script'",
            )
        )

    def address(self) -> str:
        """The page's address, the secret included."""
        return f"http://{self._hosts[0]}/{self.token}/"

    def refusal(self, path: str, headers: Mapping[str, str], *, web_socket: bool) -> str | None:
        """Why a request is refused; None where it is not."""
        host = headers.get("Host", "")
        if host not in self._hosts:
            return "This server answers to its loopback address only."
        origin = headers.get("Origin")
        if (web_socket or origin is not None) and origin != f"http://{host}":
            return "This request comes from another page."
        # Only a frame or a tab may be opened from elsewhere; what a page of another site embeds or fetches may not.
        navigation = headers.get("Sec-Fetch-Mode") == "navigate"
        if headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and not navigation:
            return "This request comes from another page."
        given = path.split("/", 2)[1] if path.startswith("/") else ""
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return "Open the panel from your editor: its address holds a secret."
        return None

    def headers(self) -> Mapping[str, str]:
        """Headers of every answer."""
        return {
            "Content-Security-Policy": self._policy,
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        }
