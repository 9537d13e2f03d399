"""How a line of the project is named and linked."""

import re
from urllib.parse import quote

from skyline_lsp.features.snapshot import absolute_path
from skyline_lsp.features.table import Cell, code

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def place(path: str, line: int, root: str, text: str | None = None) -> Cell:
    """ "blocks.py:12", in Markdown with a link to the line; `path` as in a profile, `root` absolute."""
    shown = text or f"{path}:{line}"
    return Cell(plain=shown, markdown=f"[{code(shown)}]({uri(absolute_path(path, root))}#L{line})")


def uri(path: str) -> str:
    """The `file` URI of an absolute path."""
    if _DRIVE.match(path):
        path = "/" + path.replace("\\", "/")
    elif path.startswith("\\\\"):
        return "file:" + quote(path.replace("\\", "/"), safe="/")
    return "file://" + quote(path, safe="/:")
