"""What was found in the source stays right while it is being edited."""

from pathlib import Path

import pytest

from skyline_lsp.server.documents import Document, Documents
from skyline_lsp.server.project_files import ProjectFiles
from skyline_lsp.server.source_index import SourceIndex

PROGRAM = """\
def skyline_model_provider():
    return model


def skyline_input_provider(batch_size=16):
    return (batch_size,)


def skyline_iteration_provider(model):
    return iteration
"""


class Editing:
    """A program open in an editor."""

    def __init__(self, root: Path) -> None:
        self.path = str(root / "train.py")
        Path(self.path).write_text(PROGRAM)
        self._documents = Documents()
        self.index = SourceIndex(ProjectFiles(str(root), self._documents))
        self.type(PROGRAM)
        self.look()

    def type(self, text: str) -> None:
        self._documents.open(Document(uri="file:///train.py", path=self.path, version=1, text=text))

    def look(self) -> None:
        self.index.update_entry(self.path)
        self.index.update_sites(self.path, ())

    def lines(self) -> tuple[int | None, int | None]:
        """Line of the iteration's lens, and of the batch size."""
        entry = self.index.entry_at(self.path)
        site = self.index.sites(self.path, ()).best
        return (entry.line if entry else None, site.line if site else None)


@pytest.fixture
def editing(tmp_path: Path) -> Editing:
    return Editing(tmp_path)


def test_lines_are_carried_along_before_the_source_is_looked_at_again(editing: Editing) -> None:
    """And looking again finds the same."""
    assert editing.lines() == (9, 5)
    editing.type("import torch\n\n" + PROGRAM)
    assert editing.lines() == (11, 7)
    revision = editing.index.revision
    editing.look()
    assert editing.lines() == (11, 7)
    assert editing.index.revision == revision


def test_a_retuned_site_is_the_same_site_with_another_number(editing: Editing) -> None:
    """It does not vanish between the edit and the next look, and an edit of it replaces the new digits."""
    editing.type(PROGRAM.replace("=16", "=1024"))
    site = editing.index.sites(editing.path, ()).best
    assert site is not None
    assert (site.text, site.batch_size) == ("1024", 1024)
    assert PROGRAM.replace("=16", "=1024").encode()[site.start : site.end] == b"1024"


@pytest.mark.parametrize("written", ["=x)", "=0)", "=1_6)", ")", "=16, other=1)"])
def test_a_site_whose_line_was_edited_otherwise_waits_for_the_next_look(editing: Editing, written: str) -> None:
    """Nothing is offered to be edited where it is not known what stands there."""
    editing.type(PROGRAM.replace("=16)", written))
    found = editing.index.sites(editing.path, ())
    assert found.best is None
    assert found.reason


def test_a_broken_source_keeps_its_program(editing: Editing) -> None:
    """Until it is whole again and is none any more."""
    editing.type("x = (\n" + PROGRAM)
    editing.look()
    assert editing.lines()[0] == 10
    editing.type("x = 1\n")
    editing.look()
    assert editing.lines() == (None, None)


def test_a_scan_finds_programs_and_forgets_those_that_are_gone(tmp_path: Path) -> None:
    """Sorted by path."""
    for name in ("b.py", "a.py", "other.py"):
        (tmp_path / name).write_text(PROGRAM if name != "other.py" else "x = 1\n")
    files = ProjectFiles(str(tmp_path))
    index = SourceIndex(files)
    index.scan()
    assert [Path(point.path).name for point in index.entry_points()] == ["a.py", "b.py"]
    (tmp_path / "a.py").unlink()
    assert [Path(point.path).name for point in index.entry_points()] == ["b.py"]
    index.scan()
    assert [Path(point.path).name for point in index.entry_points()] == ["b.py"]
