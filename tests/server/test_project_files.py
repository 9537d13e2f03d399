"""What the editor has open shadows the disk; what is not the project's own is left out."""

from pathlib import Path

import pytest

from skyline_lsp.server.documents import Document, Documents
from skyline_lsp.server.project_files import MAX_FILE_BYTES, ProjectFiles, encode_document


def write(path: Path, data: bytes = b"") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def document(path: str, text: str) -> Document:
    return Document(uri=f"file://{path}", path=path, version=1, text=text)


def test_an_open_document_shadows_its_file(tmp_path: Path) -> None:
    """Until it is closed."""
    path = write(tmp_path / "a.py", b"disk")
    documents = Documents()
    files = ProjectFiles(str(tmp_path), documents)
    documents.open(document(path, "editor"))
    assert (files.read(path), files.read_disk(path)) == (b"editor", b"disk")
    documents.close(f"file://{path}")
    assert files.read(path) == b"disk"


def test_absent_and_huge_files_have_no_content(tmp_path: Path) -> None:
    """Neither is an error."""
    files = ProjectFiles(str(tmp_path))
    assert files.read(str(tmp_path / "absent.py")) is None
    assert files.read(write(tmp_path / "big.py", b"x" * (MAX_FILE_BYTES + 1))) is None
    assert files.read("a\0b") is None


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    """Though what was read is kept."""
    path = write(tmp_path / "a.py", b"one")
    files = ProjectFiles(str(tmp_path))
    assert files.read(path) == b"one"
    write(tmp_path / "a.py", b"three")
    assert files.read(path) == b"three"


def test_environments_caches_and_hidden_folders_are_left_out(tmp_path: Path) -> None:
    """Whatever an environment's folder is called; links to folders are not followed."""
    kept = [write(tmp_path / "train.py"), write(tmp_path / "pkg/model.py")]
    write(tmp_path / "notes.md")
    for folder in (".git", ".venv/lib", "node_modules/x", "pkg/__pycache__", "build/lib", ".hidden"):
        write(tmp_path / folder / "skipped.py")
    write(tmp_path / "myenv/pyvenv.cfg")
    write(tmp_path / "myenv/lib/skipped.py")
    (tmp_path / "conda-env/conda-meta").mkdir(parents=True)
    write(tmp_path / "conda-env/skipped.py")
    (tmp_path / "loop").symlink_to(tmp_path)
    documents = Documents()
    unsaved = str(tmp_path / "unsaved.py")
    documents.open(document(unsaved, ""))
    documents.open(document("/elsewhere/other.py", ""))
    files = ProjectFiles(str(tmp_path), documents)
    assert files.paths((".py",)) == tuple(sorted([*kept, unsaved]))


def test_paths_are_named_as_in_a_profile(tmp_path: Path) -> None:
    """Relative to the root with forward slashes, and back; a sibling that begins alike is outside."""
    root = tmp_path / "project"
    files = ProjectFiles(str(root))
    path = str(root / "pkg" / "a.py")
    assert files.relative(path) == "pkg/a.py"
    assert files.absolute("pkg/a.py") == path
    assert files.holds(path)
    assert not files.holds(str(tmp_path / "project2" / "a.py"))


@pytest.mark.parametrize(
    ("disk", "text", "expected"),
    [
        (b"\xef\xbb\xbfa = 1\n", "a = 1\n", b"\xef\xbb\xbfa = 1\n"),
        (b"\xef\xbb\xbfa = 1\n", "a = 2\n", b"\xef\xbb\xbfa = 2\n"),
        (b"a = 1\r\nb\r\n", "a = 1\nb\n", b"a = 1\r\nb\r\n"),
        (b"", "# coding: latin-1\n# \u00e9\n", b"# coding: latin-1\n# \xe9\n"),
        (b"", "# \u00e9\n", b"# \xc3\xa9\n"),
        (b"", "# coding: latin-1\n# \u20ac\n", b"# coding: latin-1\n# \xe2\x82\xac\n"),
        (b"", "# coding: nonsense\n", b"# coding: nonsense\n"),
    ],
)
def test_documents_are_encoded_as_they_would_be_saved(disk: bytes, text: str, expected: bytes) -> None:
    """Byte order mark, declared encoding, and line ends that only the client has normalised."""
    assert encode_document(document("/x/a.py", text), disk) == expected
