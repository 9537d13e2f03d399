"""An editor for tests: pytest-lsp's client with what real editors do beside it.

It keeps its documents' text, makes the edits that the server asks for and reports them, and answers every request.
"""

import asyncio
import json
import os
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types
from lsprotocol.converters import get_converter
from pygls.protocol import default_converter
from pytest_lsp import LanguageClient

from skyline_lsp.server.documents import Change, apply_change
from skyline_lsp.server.positions import Encoding
from skyline_lsp.server.uris import uri_of

FAKE_WORKER = Path(__file__).with_name("fake_worker.py")
CLIENTS = Path(__file__).with_name("clients")
LIMIT_S = 60.0
"""Far beyond what anything takes; a test waits for messages, not for time."""

SERVE = (sys.executable, "-c", "import sys; from skyline_lsp.server import serve_stdio; sys.exit(serve_stdio())")


def client_names() -> list[str]:
    """Editors whose `initialize` was recorded."""
    return sorted(path.stem for path in CLIENTS.glob("*.json"))


class Editor(LanguageClient):
    """One editor with one server."""

    def __init__(
        self,
        root: Path,
        cache: Path,
        client: str = "vscode-1.139.1",
        *,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            configuration={"": {"skyline": {"workerCommand": [sys.executable, str(FAKE_WORKER)], **(settings or {})}}},
            converter_factory=_converter,
        )
        recorded = json.loads((CLIENTS / f"{client}.json").read_text(encoding="utf-8"))
        self.root = root
        self.cache = cache
        self.client_info = types.ClientInfo(**recorded["clientInfo"])
        self.declared = get_converter().structure(recorded["capabilities"], types.ClientCapabilities)
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.refreshed: list[str] = []
        self.registered: list[str] = []
        self.questions: list[types.ShowMessageRequestParams] = []
        self.answer: str | None = None
        self.edits: list[types.WorkspaceEdit] = []
        self.drops_edits = False
        self.initialization: dict[str, Any] | None = None
        self.encoding = Encoding.UTF16
        self._news = asyncio.Event()
        _answer_requests(self)

    async def start(self, *, command: Sequence[str] = SERVE, **options: Any) -> types.InitializeResult:
        """Start a server and greet it."""
        await self.start_io(*command, env={**os.environ, "XDG_CACHE_HOME": str(self.cache)})
        return await self.greet(**options)

    async def greet(
        self, *, folders: Sequence[Path] | None = None, trusted: bool | None = None
    ) -> types.InitializeResult:
        """`initialize` and `initialized`."""
        roots = [self.root] if folders is None else folders
        params = types.InitializeParams(
            capabilities=self.declared,
            client_info=self.client_info,
            workspace_folders=[types.WorkspaceFolder(uri=uri_of(str(root)), name=root.name) for root in roots],
            initialization_options=self.initialization if trusted is None else {"trusted": trusted},
        )
        result = await asyncio.wait_for(self.initialize_session(params), LIMIT_S)
        encoding = result.capabilities.position_encoding
        self.encoding = Encoding(getattr(encoding, "value", encoding) or "utf-16")
        return result

    async def finish(self) -> int:
        """Shut the server down; its exit code."""
        await asyncio.wait_for(self.shutdown_session(), LIMIT_S)
        assert self._server is not None
        code = await asyncio.wait_for(self._server.wait(), LIMIT_S)
        await self.stop()
        return code

    # Documents.

    def uri(self, name: str) -> str:
        return uri_of(str(self.root / name))

    def open(self, name: str) -> str:
        """Open a file; its URI."""
        uri = self.uri(name)
        self.texts[uri] = (self.root / name).read_bytes().decode("utf-8-sig")
        self.versions[uri] = 1
        item = types.TextDocumentItem(uri=uri, language_id="python", version=1, text=self.texts[uri])
        self.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
        return uri

    def replace(self, uri: str, old: str, new: str) -> None:
        """Type over the first `old`."""
        text = self.texts[uri]
        start = text.index(old)
        self.change(uri, types.Range(start=self.position(text, start), end=self.position(text, start + len(old))), new)

    def change(self, uri: str, range_: types.Range, new: str) -> None:
        change = Change(
            start=(range_.start.line, range_.start.character), end=(range_.end.line, range_.end.character), text=new
        )
        self.texts[uri] = apply_change(self.texts[uri], change, self.encoding)
        self.versions[uri] += 1
        self.text_document_did_change(
            types.DidChangeTextDocumentParams(
                text_document=types.VersionedTextDocumentIdentifier(uri=uri, version=self.versions[uri]),
                content_changes=[types.TextDocumentContentChangePartial(range=range_, text=new)],
            )
        )

    def position(self, text: str, offset: int) -> types.Position:
        before = text[:offset]
        column = before.rpartition("\n")[2]
        units = {Encoding.UTF8: "utf-8", Encoding.UTF16: "utf-16-le", Encoding.UTF32: "utf-32-le"}[self.encoding]
        width = {Encoding.UTF8: 1, Encoding.UTF16: 2, Encoding.UTF32: 4}[self.encoding]
        return types.Position(line=before.count("\n"), character=len(column.encode(units)) // width)

    def save(self, uri: str) -> None:
        """Write a document to disk and say so."""
        name = next(path for path in self.root.rglob("*") if self.uri(path.relative_to(self.root).as_posix()) == uri)
        name.write_bytes(self.texts[uri].encode())
        self.text_document_did_save(
            types.DidSaveTextDocumentParams(text_document=types.TextDocumentIdentifier(uri=uri))
        )

    # Requests, each with a limit.

    async def command(self, name: str, *arguments: Any) -> Any:
        params = types.ExecuteCommandParams(command=name, arguments=list(arguments))
        return plain(await asyncio.wait_for(self.workspace_execute_command_async(params), LIMIT_S))

    async def hints(self, uri: str) -> dict[int, str]:
        """Line (from 1) -> text."""
        whole = types.Range(start=types.Position(line=0, character=0), end=types.Position(line=10_000, character=0))
        params = types.InlayHintParams(text_document=types.TextDocumentIdentifier(uri=uri), range=whole)
        found = await asyncio.wait_for(self.text_document_inlay_hint_async(params), LIMIT_S)
        return {hint.position.line + 1: hint.label for hint in found or ()}

    async def lenses(self, uri: str) -> list[types.CodeLens]:
        params = types.CodeLensParams(text_document=types.TextDocumentIdentifier(uri=uri))
        return list(await asyncio.wait_for(self.text_document_code_lens_async(params), LIMIT_S) or ())

    async def hover(self, uri: str, line: int, column: int = 0) -> str | None:
        """What is shown at a line from 1 and a column from 0."""
        params = types.HoverParams(
            text_document=types.TextDocumentIdentifier(uri=uri),
            position=types.Position(line=line - 1, character=column),
        )
        found = await asyncio.wait_for(self.text_document_hover_async(params), LIMIT_S)
        return None if found is None else found.contents.value

    async def actions(self, uri: str, line: int, only: Sequence[str] | None = None) -> list[types.CodeAction]:
        at = types.Position(line=line - 1, character=0)
        params = types.CodeActionParams(
            text_document=types.TextDocumentIdentifier(uri=uri),
            range=types.Range(start=at, end=at),
            context=types.CodeActionContext(diagnostics=[], only=only),
        )
        return list(await asyncio.wait_for(self.text_document_code_action_async(params), LIMIT_S) or ())

    # Waiting.

    def note(self) -> None:
        """Something has come from the server."""
        self._news.set()

    async def until(self, holds: Callable[[], Any]) -> Any:
        """Wait for messages until a condition holds; its value."""

        async def wait() -> Any:
            while not (value := holds()):
                self._news.clear()
                await self._news.wait()
            return value

        return await asyncio.wait_for(wait(), LIMIT_S)

    def diagnosed(self, uri: str, code: str) -> types.Diagnostic | None:
        """The diagnostic of a document with this code."""
        return next((row for row in self.diagnostics.get(uri, ()) if row.code == code), None)

    async def reaches(self, uri: str, state: str) -> dict[str, Any]:
        """Wait until the program of a file is in a state; its status."""
        while True:
            self._news.clear()
            status = await self.command("skyline.status", {"uri": uri})
            if status["state"] == state:
                return status  # type: ignore[no-any-return]
            await asyncio.wait_for(self._news.wait(), LIMIT_S)

    async def profiled(self, uri: str) -> types.Diagnostic:
        """Wait for a profile of the text as it is, and for its summary."""
        await self.reaches(uri, "ready")

        def found() -> types.Diagnostic | None:
            row = self.diagnosed(uri, "profile")
            return row if row is not None and not row.message.startswith("Before") else None

        return await self.until(found)

    def runs(self) -> list[dict[str, Any]]:
        """What the worker was asked to run."""
        journal = self.root / "runs.jsonl"
        return [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []

    def logged(self, text: str) -> bool:
        return any(text in message.message for message in self.log_messages)


def plain(value: Any) -> Any:
    """What pygls makes of JSON without a type, as JSON again."""
    if hasattr(value, "_asdict"):
        return {key: plain(item) for key, item in value._asdict().items()}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def _converter() -> Any:
    converter = default_converter()

    def structure(value: Any, _: Any) -> types.Command | types.CodeAction:
        # lsprotocol's own hook takes every action that has a command for a command.
        kind = types.Command if isinstance(value.get("command"), str) else types.CodeAction
        return converter.structure(value, kind)

    converter.register_structure_hook(types.Command | types.CodeAction, structure)
    converter.register_structure_hook(typing.Union[types.Command, types.CodeAction], structure)  # noqa: UP007
    return converter


def _answer_requests(editor: Editor) -> None:
    from pytest_lsp.client import DEFAULT_CLIENT_FEATURES

    def noting(handler: Callable[..., Any]) -> Callable[..., Any]:
        def handle(params: Any) -> Any:
            try:
                return handler(editor, params)
            finally:
                editor.note()

        return handle

    for method, handler in DEFAULT_CLIENT_FEATURES.items():
        editor.feature(method)(noting(handler))

    @editor.feature(types.WORKSPACE_INLAY_HINT_REFRESH)
    def refresh_hints(params: None) -> None:
        editor.refreshed.append("hints")
        editor.note()

    @editor.feature(types.WORKSPACE_CODE_LENS_REFRESH)
    def refresh_lenses(params: None) -> None:
        editor.refreshed.append("lenses")
        editor.note()

    @editor.feature(types.CLIENT_REGISTER_CAPABILITY)
    def register(params: types.RegistrationParams) -> None:
        editor.registered += [registration.method for registration in params.registrations]
        editor.note()

    @editor.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)
    def ask(params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
        editor.questions.append(params)
        editor.note()
        titles = [action.title for action in params.actions or ()]
        title = next((title for title in titles if editor.answer is not None and editor.answer in title), None)
        return types.MessageActionItem(title=title) if title is not None else None

    @editor.feature(types.WORKSPACE_APPLY_EDIT)
    def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        editor.edits.append(params.edit)
        if not editor.drops_edits:
            for document_uri, edits, version in edited(params.edit):
                assert version in (None, editor.versions.get(document_uri))
                for edit in edits:
                    editor.change(document_uri, edit.range, edit.new_text)
        editor.note()
        return types.ApplyWorkspaceEditResult(applied=True)


def edited(edit: types.WorkspaceEdit) -> list[tuple[str, Sequence[types.TextEdit], int | None]]:
    """Each document of an edit with what is replaced, and the version it is for."""
    if edit.document_changes is not None:
        return [
            (change.text_document.uri, change.edits, change.text_document.version) for change in edit.document_changes
        ]
    return [(uri, edits, None) for uri, edits in (edit.changes or {}).items()]
