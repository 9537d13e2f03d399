"""Paths survive the way to the client and back, on POSIX and on Windows."""

import pytest

from skyline_lsp.server.uris import path_of, uri_of


@pytest.mark.parametrize(
    ("uri", "windows", "path"),
    [
        ("file:///home/u/train.py", False, "/home/u/train.py"),
        ("file:///home/u/a%20b%23%25.py", False, "/home/u/a b#%.py"),
        ("file:///home/u/a?b#c.py", False, "/home/u/a?b#c.py"),
        ("file://localhost/home/u/x.py", False, "/home/u/x.py"),
        ("file:///c%3A/Users/u/x.py", True, "C:\\Users\\u\\x.py"),
        ("file:///C:/Users/u/x.py", True, "C:\\Users\\u\\x.py"),
        ("file://server/share/x.py", True, "\\\\server\\share\\x.py"),
        ("untitled:Untitled-1", False, None),
        ("vscode-notebook-cell:/home/u/x.ipynb#W0", False, None),
    ],
)
def test_uris_are_read_as_clients_write_them(uri: str, windows: bool, path: str | None) -> None:
    """Escapes, drives, shares; anything but a file has no path."""
    assert path_of(uri, windows=windows) == path


@pytest.mark.parametrize(
    ("path", "windows"),
    [
        ("/home/u/\u00e9 #?%.py", False),
        ("/home/u/back\\slash.py", False),
        ("C:\\Users\\u\\my file.py", True),
        ("\\\\server\\share\\x.py", True),
    ],
)
def test_paths_come_back_from_their_uris(path: str, windows: bool) -> None:
    """`path_of` undoes `uri_of`."""
    uri = uri_of(path, windows=windows)
    assert uri.isascii()
    assert path_of(uri, windows=windows) == path
