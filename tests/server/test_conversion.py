"""Plain data becomes the protocol's types, in the form that the client can take."""

from dataclasses import replace

import pytest
from lsprotocol import types

from skyline_lsp.features import Diagnostic, Hint, Hover, Lens, Related, Severity
from skyline_lsp.features import command as commands
from skyline_lsp.features.command import command
from skyline_lsp.server import conversion
from skyline_lsp.server.conversion import ClientAbilities
from skyline_lsp.server.positions import Encoding
from skyline_lsp.server.uris import uri_of
from skyline_lsp.source import Edit, decode

SOURCE = decode("import torch\n    \U0001f600\u00e9 = f(32)  \n".encode())


def at(line: int, start: int, end: int) -> types.Range:
    return types.Range(start=types.Position(line=line, character=start), end=types.Position(line=line, character=end))


@pytest.mark.parametrize(("encoding", "end"), [(Encoding.UTF8, 18), (Encoding.UTF16, 15), (Encoding.UTF32, 14)])
def test_a_line_is_covered_without_its_indentation_and_trailing_space(encoding: Encoding, end: int) -> None:
    """In the client's units."""
    assert conversion.to_range(SOURCE.lines, 2, None, None, encoding) == at(1, 4, end)


@pytest.mark.parametrize("line", [0, 4, 99])
def test_lines_that_are_not_there_make_empty_ranges_within_the_document(line: int) -> None:
    """The file may have shrunk since."""
    found = conversion.to_range(SOURCE.lines, line, None, None, Encoding.UTF16)
    assert found.start == found.end
    assert 0 <= found.start.line < len(SOURCE.lines)
    assert conversion.to_range((), 1, None, None, Encoding.UTF16) == at(0, 0, 0)


def test_a_hint_stands_at_the_end_of_its_line() -> None:
    """Apart from the text; clickable where it has a command."""
    hint = Hint(line=2, text="fwd 1 ms", tooltip="**detail**")
    found = conversion.to_inlay_hint(hint, SOURCE, Encoding.UTF16, uri_of)
    assert (found.position, found.label, found.padding_left) == (at(1, 0, 17).end, "fwd 1 ms", True)
    clickable = replace(hint, command=command("Show", commands.SHOW, path="/p/a.py", line=3))
    (part,) = conversion.to_inlay_hint(clickable, SOURCE, Encoding.UTF16, uri_of).label
    assert isinstance(part, types.InlayHintLabelPart)
    assert part.command is not None
    assert part.command.command == commands.SHOW


def test_commands_carry_a_uri_beside_each_path() -> None:
    """At any depth; editors know files by URI."""
    lens = Lens(
        line=1,
        command=command("set", commands.SET_BATCH_SIZE, path="/p/a b.py", site={"path": "/p/c.py", "line": 3}),
    )
    found = conversion.to_code_lens(lens, SOURCE, Encoding.UTF16, uri_of)
    assert found.command is not None
    assert found.command.arguments == [
        {
            "path": "/p/a b.py",
            "uri": "file:///p/a%20b.py",
            "site": {"path": "/p/c.py", "uri": "file:///p/c.py", "line": 3},
        }
    ]
    assert found.range == at(0, 0, 12)


def test_a_click_that_asks_wants_to_be_shown_the_answer() -> None:
    """A client that calls the command itself gets the answer as its result."""
    found = conversion.to_command(command("predict", commands.PREDICT, path="/p/a.py", batchSize=8), uri_of)
    assert found.arguments == [{"path": "/p/a.py", "uri": "file:///p/a.py", "batchSize": 8, "show": True}]


@pytest.mark.parametrize(
    ("markdown", "renders_tables", "kind", "expected"),
    [
        (True, True, types.MarkupKind.Markdown, "| a |"),
        (True, False, types.MarkupKind.Markdown, "```text\na\n```"),
        (False, True, types.MarkupKind.PlainText, "a"),
    ],
)
def test_a_hover_comes_in_the_form_that_the_client_shows_best(
    markdown: bool, renders_tables: bool, kind: types.MarkupKind, expected: str
) -> None:
    """Markdown, Markdown without tables, plain text."""
    hover = Hover(markdown="| a |", plain="a", line=2)
    found = conversion.to_hover(hover, SOURCE, Encoding.UTF32, markdown=markdown, renders_tables=renders_tables)
    assert found.contents == types.MarkupContent(kind=kind, value=expected)


@pytest.mark.parametrize("related", [True, False])
def test_related_places_are_told_where_the_client_takes_them(related: bool) -> None:
    """Each with its own file's columns."""
    diagnostic = Diagnostic(
        path="/p/a.py",
        line=2,
        column=4,
        end_column=5,
        severity=Severity.ERROR,
        code="exception",
        message="wrong",
        related=(Related(path="/p/b.py", line=1, message="called from f"),),
    )
    abilities = ClientAbilities(related_information=related)
    lines = {"/p/a.py": SOURCE.lines, "/p/b.py": ("  f()",)}
    found = conversion.to_diagnostic(diagnostic, lines.__getitem__, uri_of, abilities)
    assert (found.range, found.severity, found.source) == (at(1, 4, 6), types.DiagnosticSeverity.Error, "skyline")
    expected = types.DiagnosticRelatedInformation(
        location=types.Location(uri="file:///p/b.py", range=at(0, 2, 5)), message="called from f"
    )
    assert found.related_information == ([expected] if related else None)


def test_an_edit_is_bound_to_its_version_where_the_client_can_do_that() -> None:
    """A file that is not open has none."""
    edit = Edit(path="/p/a.py", start=0, end=2, old="32", new="64", line=2, start_column=11, end_column=13)
    text_edit = conversion.to_text_edit(edit, SOURCE.lines, Encoding.UTF16)
    assert text_edit == types.TextEdit(range=at(1, 12, 14), new_text="64")
    versioned = conversion.to_workspace_edit(text_edit, "file:///p/a.py", 7, document_changes=True)
    assert versioned.changes is None
    assert versioned.document_changes is not None
    (change,) = versioned.document_changes
    assert isinstance(change, types.TextDocumentEdit)
    assert (change.text_document.version, list(change.edits)) == (7, [text_edit])
    simple = conversion.to_workspace_edit(text_edit, "file:///p/a.py", 7, document_changes=False)
    assert (simple.document_changes, simple.changes) == (None, {"file:///p/a.py": [text_edit]})


@pytest.mark.parametrize(
    ("only", "expected"),
    [(None, True), (["refactor"], True), (["refactor.rewrite"], True), ([""], True), (["refac"], False), ([], False)],
)
def test_a_kind_includes_its_sub_kinds(only: list[str] | None, expected: bool) -> None:
    """By whole words of its name."""
    assert conversion.wanted("refactor.rewrite", only) is expected


def test_what_a_client_does_not_declare_it_can_not_do() -> None:
    """Columns are then UTF-16, as the protocol has it."""
    assert conversion.abilities_of(types.ClientCapabilities(), None, None) == ClientAbilities()
