"""Plain data to the protocol's types.

Every type is built with keyword arguments: positions of fields differ between versions of the protocol. Lines of the
project count from 1 and columns are code points; a client's lines count from 0 and its columns are what was agreed on.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lsprotocol import types

from skyline_lsp.features import Action, Command, Diagnostic, Hint, Hover, Lens, Severity
from skyline_lsp.features import command as commands
from skyline_lsp.server.positions import Encoding, units_of
from skyline_lsp.source import Edit, SourceText

SOURCE = "skyline"

_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFORMATION: types.DiagnosticSeverity.Information,
    Severity.HINT: types.DiagnosticSeverity.Hint,
}
# Their answer is what the user wants to see; a client that calls them itself gets it as the result.
_SHOWN = (commands.PREDICT, commands.STATUS, commands.MEASURE_ADVICE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAbilities:
    """What the client can take, out of its capabilities."""

    encoding: Encoding = Encoding.UTF16
    markdown_hover: bool = False
    related_information: bool = False
    versioned_diagnostics: bool = False
    document_changes: bool = False
    apply_edit: bool = False
    show_document: bool = False
    preferred_actions: bool = False
    action_literals: bool = False
    refresh_hints: bool = False
    refresh_lenses: bool = False
    progress: bool = False
    configuration: bool = False
    register_configuration: bool = False
    register_watchers: bool = False


def abilities_of(
    capabilities: types.ClientCapabilities,
    encoding: types.PositionEncodingKind | str | None,
    client: types.ClientInfo | None,
) -> ClientAbilities:
    """Read a client's capabilities, absent ones meaning no."""
    text = capabilities.text_document or types.TextDocumentClientCapabilities()
    workspace = capabilities.workspace or types.WorkspaceClientCapabilities()
    window = capabilities.window or types.WindowClientCapabilities()
    formats = text.hover.content_format if text.hover is not None else None
    action = text.code_action
    name = client.name if client is not None else ""
    return ClientAbilities(
        encoding=Encoding(getattr(encoding, "value", encoding) or "utf-16"),
        markdown_hover=bool(formats) and formats is not None and formats[0] == types.MarkupKind.Markdown,
        related_information=bool(text.publish_diagnostics and text.publish_diagnostics.related_information),
        versioned_diagnostics=bool(text.publish_diagnostics and text.publish_diagnostics.version_support),
        document_changes=bool(workspace.workspace_edit and workspace.workspace_edit.document_changes),
        apply_edit=bool(workspace.apply_edit),
        show_document=bool(window.show_document and window.show_document.support),
        preferred_actions=bool(action and action.is_preferred_support),
        action_literals=bool(action and action.code_action_literal_support),
        # Eglot answers the request, though it declares nothing.
        refresh_hints=bool(workspace.inlay_hint and workspace.inlay_hint.refresh_support) or name == "Eglot",
        refresh_lenses=bool(workspace.code_lens and workspace.code_lens.refresh_support),
        progress=bool(window.work_done_progress),
        configuration=bool(workspace.configuration),
        register_configuration=bool(
            workspace.did_change_configuration and workspace.did_change_configuration.dynamic_registration
        ),
        register_watchers=bool(
            workspace.did_change_watched_files and workspace.did_change_watched_files.dynamic_registration
        ),
    )


def to_position(lines: Sequence[str], line: int, column: int, encoding: Encoding) -> types.Position:
    """A line from 1 and a column in code points; past the end it is the end."""
    if not lines:
        return types.Position(line=0, character=0)
    index = max(0, min(line - 1, len(lines) - 1))
    return types.Position(line=index, character=units_of(lines[index][: max(0, column)], encoding))


def to_range(
    lines: Sequence[str], line: int, column: int | None, end_column: int | None, encoding: Encoding
) -> types.Range:
    """A part of a line; without columns the line's text, its indentation left out."""
    text = lines[line - 1] if 1 <= line <= len(lines) else ""
    if column is None:
        column = len(text) - len(text.lstrip())
    if end_column is None:
        end_column = max(column, len(text.rstrip()))
    return types.Range(
        start=to_position(lines, line, column, encoding), end=to_position(lines, line, end_column, encoding)
    )


def to_command(command: Command, uri_of: Callable[[str], str]) -> types.Command:
    """A command; beside each path the file's URI."""
    arguments = [_with_uris(argument, uri_of) for argument in command.arguments]
    if command.name in _SHOWN:
        arguments = [{**(arguments[0] if arguments else {}), "show": True}]
    return types.Command(
        title=command.title, command=command.name, arguments=arguments or None, tooltip=command.tooltip
    )


def to_inlay_hint(hint: Hint, source: SourceText, encoding: Encoding, uri_of: Callable[[str], str]) -> types.InlayHint:
    """A hint at the end of its line."""
    text = source.lines[hint.line - 1] if 1 <= hint.line <= len(source.lines) else ""
    label: str | list[types.InlayHintLabelPart] = hint.text
    if hint.command is not None:
        label = [types.InlayHintLabelPart(value=hint.text, command=to_command(hint.command, uri_of))]
    return types.InlayHint(
        position=to_position(source.lines, hint.line, len(text), encoding),
        label=label,
        tooltip=types.MarkupContent(kind=types.MarkupKind.Markdown, value=hint.tooltip),
        padding_left=True,
    )


def to_code_lens(lens: Lens, source: SourceText, encoding: Encoding, uri_of: Callable[[str], str]) -> types.CodeLens:
    """A lens on the whole of its line."""
    return types.CodeLens(
        range=to_range(source.lines, lens.line, None, None, encoding), command=to_command(lens.command, uri_of)
    )


def to_hover(
    hover: Hover, source: SourceText, encoding: Encoding, *, markdown: bool, renders_tables: bool
) -> types.Hover:
    """A hover in the form that the client asks for and can show."""
    kind = types.MarkupKind.Markdown if markdown else types.MarkupKind.PlainText
    text = hover.plain if not markdown else hover.markdown if renders_tables else hover.fenced
    return types.Hover(
        contents=types.MarkupContent(kind=kind, value=text),
        range=to_range(source.lines, hover.line, None, None, encoding),
    )


def to_diagnostic(
    diagnostic: Diagnostic,
    lines_of: Callable[[str], Sequence[str]],
    uri_of: Callable[[str], str],
    abilities: ClientAbilities,
) -> types.Diagnostic:
    """A diagnostic; without columns it covers its line."""

    def located(path: str, line: int) -> types.Location:
        return types.Location(uri=uri_of(path), range=to_range(lines_of(path), line, None, None, abilities.encoding))

    related = [
        types.DiagnosticRelatedInformation(location=located(item.path, item.line), message=item.message)
        for item in diagnostic.related
    ]
    return types.Diagnostic(
        range=to_range(
            lines_of(diagnostic.path), diagnostic.line, diagnostic.column, diagnostic.end_column, abilities.encoding
        ),
        severity=_SEVERITIES[diagnostic.severity],
        code=diagnostic.code,
        source=SOURCE,
        message=diagnostic.message,
        related_information=related if related and abilities.related_information else None,
    )


def to_text_edit(edit: Edit, lines: Sequence[str], encoding: Encoding) -> types.TextEdit:
    """The replacement of a part of one line."""
    return types.TextEdit(
        range=to_range(lines, edit.line, edit.start_column, edit.end_column, encoding), new_text=edit.new
    )


def to_workspace_edit(
    edit: types.TextEdit, uri: str, version: int | None, *, document_changes: bool
) -> types.WorkspaceEdit:
    """One edit of one document, bound to the document's version where the client can do that."""
    if not document_changes:
        return types.WorkspaceEdit(changes={uri: [edit]})
    document = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(text_document=document, edits=[edit])])


def to_code_action(
    action: Action,
    edit: types.WorkspaceEdit | None,
    fixes: types.Diagnostic | None,
    uri_of: Callable[[str], str],
    abilities: ClientAbilities,
) -> types.CodeAction | types.Command | None:
    """An action; for a client that knows commands only, its command."""
    command = to_command(action.command, uri_of) if action.command is not None else None
    if not abilities.action_literals:
        return command
    return types.CodeAction(
        title=action.title,
        kind=types.CodeActionKind(action.kind.value),
        diagnostics=[fixes] if fixes is not None else None,
        is_preferred=True if action.preferred and abilities.preferred_actions else None,
        edit=edit,
        command=command,
    )


def wanted(kind: str, only: Sequence[types.CodeActionKind | str] | None) -> bool:
    """Whether a client that asks for some kinds of action asks for this one. A kind includes its sub-kinds."""
    if only is None:
        return True
    names = [str(getattr(name, "value", name)) for name in only]
    return any(name == "" or kind == name or kind.startswith(f"{name}.") for name in names)


def _with_uris(value: Any, uri_of: Callable[[str], str]) -> Any:
    if isinstance(value, Mapping):
        given = {key: _with_uris(item, uri_of) for key, item in value.items()}
        path = value.get("path")
        return {**given, "uri": uri_of(path)} if isinstance(path, str) else given
    if isinstance(value, (list, tuple)):
        return [_with_uris(item, uri_of) for item in value]
    return value
