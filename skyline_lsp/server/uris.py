"""File URIs and paths, on POSIX and on Windows.

The platform is an argument, so that both are tested on either.
"""

import os
from urllib.parse import quote, unquote, urlsplit

_WINDOWS = os.name == "nt"
# What may stand unescaped in a path: RFC 3986's unreserved and sub-delimiters, and "@".
_SAFE = "/-._~!$&'()*+,;=@"


def path_of(uri: str, *, windows: bool = _WINDOWS) -> str | None:
    """Absolute path of a `file:` URI; None for any other scheme, such as an unsaved buffer's."""
    parts = urlsplit(uri, allow_fragments=False)
    if parts.scheme.lower() != "file":
        return None
    # "?" is left in a path by clients that escape too little; no file URI has a query.
    path = unquote(parts.path + (f"?{parts.query}" if parts.query else ""))
    host = unquote(parts.netloc)
    if host and host.lower() != "localhost":
        path = f"//{host}{path}"
    if not windows:
        return path or None
    if len(path) > 2 and path[0] == "/" and path[1].isalpha() and path[2] == ":":
        # Editors disagree on the drive's case; Python's own paths have it upper.
        path = path[1].upper() + path[2:]
    return path.replace("/", "\\") or None


def uri_of(path: str, *, windows: bool = _WINDOWS) -> str:
    """`file:` URI of an absolute path."""
    if not windows:
        return "file://" + quote(path, safe=_SAFE)
    path = path.replace("\\", "/")
    if path.startswith("//"):
        host, _, rest = path[2:].partition("/")
        return f"file://{quote(host, safe=_SAFE)}/{quote(rest, safe=_SAFE)}"
    drive, rest = path[:2], path[2:]
    return f"file:///{drive}{quote(rest, safe=_SAFE)}"
