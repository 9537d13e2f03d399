"""The language server: what the editor says goes to sessions, what sessions show goes to the editor.

A handler converts in, asks a session or a feature, and converts out. All of them are short or coroutines; none waits
for user code, which runs in the worker.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

import skyline_lsp
from skyline_lsp import features
from skyline_lsp.server import conversion
from skyline_lsp.server.cache import ResultCache
from skyline_lsp.server.commands import COMMANDS, run_command
from skyline_lsp.server.conversion import ClientAbilities
from skyline_lsp.server.documents import Change, Document, Documents, path_key
from skyline_lsp.server.output_log import ClientLogHandler, OutputLog
from skyline_lsp.server.panel_host import PanelOwner
from skyline_lsp.server.positions import code_points_of
from skyline_lsp.server.progress_bar import ProgressBar
from skyline_lsp.server.project_files import find_root
from skyline_lsp.server.session import Activity, Session
from skyline_lsp.server.settings import SECTION, LogLevel, Source, read_settings
from skyline_lsp.server.transport import SkylineProtocol
from skyline_lsp.server.uris import path_of, uri_of
from skyline_lsp.source import Edit, EditConflict
from skyline_lsp.source import apply as apply_edit

_log = logging.getLogger(__name__)

_ANSWER_S: Final = 10.0
"""How long the client may take to answer; some never do."""
_REFRESH_S: Final = 2.0
_REFRESH_PAUSE_S: Final = 0.2
_PUBLISH_PAUSE_S: Final = 0.05
_CONFIRM_OPEN_S: Final = 3.0
_CONFIRM_CLOSED_S: Final = 0.5
# Their clients show the source of Markdown tables.
_RAW_TABLES: Final = ("Neovim", "helix")
_LEVELS: Final = {
    LogLevel.ERROR: logging.ERROR,
    LogLevel.WARNING: logging.WARNING,
    LogLevel.INFO: logging.INFO,
    LogLevel.DEBUG: logging.DEBUG,
}
_WATCHED: Final = ("**/*.py", "**/*.{yaml,yml,toml,json}")


class Server(LanguageServer):
    """One client and its projects."""

    protocol: SkylineProtocol

    def __init__(self) -> None:
        super().__init__(name="skyline-lsp", version=skyline_lsp.__version__, protocol_cls=SkylineProtocol)
        self.exit_code: int | None = None
        self.stopping = threading.Event()
        self.documents = Documents()
        self.abilities = ClientAbilities()
        self._client_name = ""
        self._initialization: Any = None
        self._pushed_configuration: Any = None
        self._folders: dict[str, str] = {}
        """Real path -> path as the client spells it."""
        self._sessions: dict[str, Session] = {}
        self._settled: dict[str, asyncio.Task[None]] = {}
        self._last_session: Session | None = None
        self._level = logging.INFO
        self._told: set[str] = set()
        self._published: dict[str, list[types.Diagnostic]] = {}
        self._displayed: tuple[object, ...] = ()
        self._publishing: asyncio.TimerHandle | None = None
        self._refreshers: tuple[_Refresher, ...] = ()
        self._progress: dict[str, ProgressBar] = {}
        self._panels: dict[str, PanelOwner] = {}
        self._text_changed = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._output = OutputLog(lambda text: self._log_message(types.MessageType.Info, text))
        self._log_handler = ClientLogHandler(self._log_message)
        _register(self)

    # Life.

    def start(self, params: types.InitializeParams) -> None:
        """Take in what the client says of itself."""
        self.abilities = conversion.abilities_of(
            params.capabilities, self.workspace.position_encoding, params.client_info
        )
        self._client_name = params.client_info.name if params.client_info is not None else ""
        self._initialization = params.initialization_options
        roots = [folder.uri for folder in params.workspace_folders or ()]
        if not roots and (root := params.root_uri or (uri_of(params.root_path) if params.root_path else None)):
            roots = [root]
        for uri in roots:
            self._add_folder(uri)
        logging.getLogger("skyline_lsp").addHandler(self._log_handler)
        if params.trace is not None:
            self.protocol.trace = params.trace
        self.apply_log_level()

    async def started(self) -> None:
        """The client is ready to be asked."""
        refreshers = []
        if self.abilities.refresh_hints:
            refreshers.append(_Refresher(self, types.WORKSPACE_INLAY_HINT_REFRESH))
        if self.abilities.refresh_lenses:
            refreshers.append(_Refresher(self, types.WORKSPACE_CODE_LENS_REFRESH))
        self._refreshers = tuple(refreshers)
        for root in self._folders:
            self._session_at(root)
        await self._register_capabilities()

    async def close(self) -> None:
        """End every session."""
        if self._publishing is not None:
            self._publishing.cancel()
        for task in tuple(self._tasks):
            task.cancel()
        sessions, self._sessions = tuple(self._sessions.values()), {}
        panels, self._panels = tuple(self._panels.values()), {}
        await asyncio.gather(*(panel.close() for panel in panels), return_exceptions=True)
        await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)
        logging.getLogger("skyline_lsp").removeHandler(self._log_handler)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something beside the handler that asks for it; a fault is logged."""

        async def guarded() -> None:
            try:
                await work
            except JsonRpcException as error:
                _log.info("the client refused: %s", error)
            except Exception:
                _log.exception("a task failed")

        task = asyncio.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log a fault; requests carry their own error, and a dialogue for a notification's helps nobody."""
        _log.error("%s: %s", getattr(source, "__name__", source), error)

    # Sessions.

    def _add_folder(self, uri: str) -> None:
        path = path_of(uri)
        if path is not None:
            path = path.rstrip("/\\") or path
            self._folders[os.path.realpath(path)] = path

    def session_for(self, path: str) -> Session:
        """The session of the folder that holds a file: the innermost workspace folder, else its own project."""
        self._last_session = self._session_at(self._root_of(path))
        return self._last_session

    def any_session(self) -> Session | None:
        """The session that was last in use, for a request that names no file."""
        if self._last_session is None and self._folders:
            self._last_session = self._session_at(next(iter(self._folders)))
        return self._last_session

    def _root_of(self, path: str) -> str:
        holding = [root for root in self._folders if _holds(root, path)]
        return max(holding, key=len) if holding else find_root(os.path.dirname(path))

    def _session_at(self, root: str) -> Session:
        session = self._sessions.get(root)
        if session is None:
            session = Session(root, documents=self.documents, cache=ResultCache(root), listener=self)
            self._sessions[root] = session
            self._settled[root] = asyncio.create_task(self._read_settings(session))
        return session

    async def settled(self, session: Session) -> None:
        """Wait until a session has its settings."""
        if (task := self._settled.get(session.root)) is not None:
            await asyncio.shield(task)

    async def change_folders(self, event: types.WorkspaceFoldersChangeEvent) -> None:
        """Folders came or went."""
        for folder in event.removed:
            path = path_of(folder.uri)
            root = os.path.realpath(path) if path is not None else ""
            self._folders.pop(root, None)
            if (panel := self._panels.pop(root, None)) is not None:
                await panel.close()
            if (session := self._sessions.pop(root, None)) is not None:
                self._last_session = None if self._last_session is session else self._last_session
                await session.close()
        for folder in event.added:
            self._add_folder(folder.uri)
        for document in self.documents:
            self.session_for(document.path).document_opened(document.path)
        self.changed()

    # Settings.

    async def _read_settings(self, session: Session) -> None:
        configuration = self._pushed_configuration
        if self.abilities.configuration:
            item = types.ConfigurationItem(scope_uri=self.uri(session.root), section=SECTION)
            params = types.ConfigurationParams(items=[item])
            try:
                answers = await asyncio.wait_for(self.workspace_configuration_async(params), _ANSWER_S)
                configuration = answers[0] if answers else None
            except (asyncio.TimeoutError, JsonRpcException) as error:
                _log.warning("the client gives no settings: %s", error or "no answer")
        reading = read_settings(
            configuration=configuration,
            initialization=self._initialization,
            pyproject=session.files.read(session.pyproject),
        )
        for problem in reading.problems:
            _log.warning("%s", problem.message)
            # What is wrong in pyproject.toml is shown there.
            if problem.source is not Source.PROJECT or problem.line is None:
                self.notice(problem.message)
        self._level = _LEVELS[reading.settings.log_level]
        self.apply_log_level()
        session.apply_settings(reading)

    def settings_changed(self, pushed: Any = None) -> None:
        """Read the settings of every session anew."""
        if not self.abilities.configuration and pushed is not None:
            self._pushed_configuration = pushed
        for root, session in self._sessions.items():
            self._settled[root] = asyncio.create_task(self._read_settings(session))

    def apply_log_level(self) -> None:
        """Write as much as the settings say; `$/setTrace` may ask for more, not for less."""
        traced = {types.TraceValue.Messages: logging.INFO, types.TraceValue.Verbose: logging.DEBUG}
        level = min(self._level, traced.get(self.protocol.trace, logging.CRITICAL))
        self._log_handler.setLevel(level)
        logger = logging.getLogger("skyline_lsp")
        # A log file has a level of its own, given on the command line.
        logger.setLevel(
            min([level, *(handler.level for handler in logger.handlers if handler is not self._log_handler)])
        )

    async def _register_capabilities(self) -> None:
        registrations = []
        if self.abilities.register_configuration:
            registrations.append(
                types.Registration(
                    id="configuration",
                    method=types.WORKSPACE_DID_CHANGE_CONFIGURATION,
                    register_options=types.DidChangeConfigurationRegistrationOptions(section=SECTION),
                )
            )
        if self.abilities.register_watchers:
            watchers = [types.FileSystemWatcher(glob_pattern=pattern) for pattern in _WATCHED]
            registrations.append(
                types.Registration(
                    id="files",
                    method=types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
                    register_options=types.DidChangeWatchedFilesRegistrationOptions(watchers=watchers),
                )
            )
        if registrations:
            params = types.RegistrationParams(registrations=registrations)
            try:
                await asyncio.wait_for(self.client_register_capability_async(params), _ANSWER_S)
            except (asyncio.TimeoutError, JsonRpcException) as error:
                _log.info("the client registers nothing: %s", error or "no answer")

    # Documents.

    def did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        """A document is the editor's from now on."""
        item = params.text_document
        path = path_of(item.uri)
        if path is None:
            return
        path = os.path.realpath(path)
        self.documents.open(Document(uri=item.uri, path=path, version=item.version, text=item.text))
        self._documents_changed()
        self.session_for(path).document_opened(path)

    def did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """A document has a new text."""
        changes: list[Change | str] = []
        for change in params.content_changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                start, end = change.range.start, change.range.end
                changes.append(
                    Change(start=(start.line, start.character), end=(end.line, end.character), text=change.text)
                )
            else:
                changes.append(change.text)
        identifier = params.text_document
        document = self.documents.change(identifier.uri, identifier.version, changes, self.abilities.encoding)
        if document is not None:
            self._documents_changed()
            self.session_for(document.path).document_changed(document.path)

    def did_save(self, params: types.DidSaveTextDocumentParams) -> None:
        """A document was written."""
        document = self.documents.at_uri(params.text_document.uri)
        if document is None:
            return
        session = self.session_for(document.path)
        if path_key(document.path) == path_key(session.pyproject):
            self.settings_changed()
        session.document_saved(document.path)

    def did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        """A document is the file system's again."""
        document = self.documents.close(params.text_document.uri)
        if document is not None:
            self._documents_changed()
            self.session_for(document.path).document_changed(document.path)

    def files_changed(self, params: types.DidChangeWatchedFilesParams) -> None:
        """Files were changed by others."""
        paths = [os.path.realpath(path) for change in params.changes if (path := path_of(change.uri)) is not None]
        for session in tuple(self._sessions.values()):
            below = [path for path in paths if session.files.holds(path)]
            if any(path_key(path) == path_key(session.pyproject) for path in below):
                self.settings_changed()
            if below:
                session.files_changed()

    def _documents_changed(self) -> None:
        self._text_changed.set()
        self._text_changed = asyncio.Event()

    def path(self, uri: str) -> str | None:
        """Path of a document or a file; None where it is neither."""
        document = self.documents.at_uri(uri)
        path = document.path if document is not None else path_of(uri)
        return None if path is None else os.path.realpath(path)

    def uri(self, path: str) -> str:
        """URI of a file, spelled as the client spells it."""
        document = self.documents.at_path(path)
        if document is not None:
            return document.uri
        for root, spelled in self._folders.items():
            if path == root or _holds(root, path):
                return uri_of(spelled + path[len(root) :])
        return uri_of(path)

    def lines(self, path: str) -> Sequence[str]:
        """Lines of a file as the editor has it."""
        return self._session_at(self._root_of(path)).source(path).lines

    # What sessions tell; this is their `Listener`.

    def changed(self) -> None:
        """Show what there is to show, soon, and once for many changes."""
        if self._publishing is None:
            self._publishing = asyncio.get_running_loop().call_later(_PUBLISH_PAUSE_S, self._publish)

    def activity(self, session: Session, activity: Activity | None) -> None:
        """Show what a session is busy with."""
        if not self.abilities.progress:
            return
        bar = self._progress.get(session.root)
        if bar is None:
            bar = self._progress[session.root] = ProgressBar(self)
        bar.show(activity)

    def output(self, text: str) -> None:
        """Log what the user's program wrote."""
        self._output.write(text)

    def notice(self, text: str) -> None:
        """Show a message, once."""
        if text not in self._told:
            self._told.add(text)
            self.show(text, types.MessageType.Warning)

    def show(self, text: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Show a message."""
        self.window_show_message(types.ShowMessageParams(type=kind, message=text))

    def cancel_progress(self, token: types.ProgressToken) -> None:
        """The user has pressed a progress bar's cancel."""
        for root, bar in self._progress.items():
            if bar.token == token and (session := self._sessions.get(root)) is not None:
                self.spawn(session.cancel())

    def _log_message(self, kind: types.MessageType, text: str) -> None:
        self.window_log_message(types.LogMessageParams(type=kind, message=text))

    def _publish(self) -> None:
        self._publishing = None
        for panel in self._panels.values():
            panel.notify()
        found: dict[str, list[types.Diagnostic]] = {}
        for session in self._sessions.values():
            for path, rows in session.diagnostics().items():
                converted = [conversion.to_diagnostic(row, self.lines, self.uri, self.abilities) for row in rows]
                found.setdefault(self.uri(path), []).extend(converted)
        for uri in [*found, *(uri for uri in self._published if uri not in found)]:
            rows_now = found.get(uri, [])
            if rows_now == self._published.get(uri, []):
                continue
            document = self.documents.at_uri(uri)
            version = document.version if document is not None and self.abilities.versioned_diagnostics else None
            self.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=rows_now)
            )
        self._published = found
        # Not at each key stroke: of a document that it changes itself, a client asks anew by itself.
        display = tuple(session.display_key() for session in self._sessions.values())
        if display != self._displayed:
            self._displayed = display
            for refresher in self._refreshers:
                refresher.refresh()

    # Features.

    async def _snapshot(self, path: str) -> features.Snapshot:
        session = self.session_for(path)
        await session.prepared(path)
        return session.snapshot(path)

    async def inlay_hints(self, params: types.InlayHintParams) -> list[types.InlayHint]:
        """Hints of a part of a document."""
        path = self.path(params.text_document.uri)
        if path is None:
            return []
        shot = await self._snapshot(path)
        hints = features.inlay_hints(shot, params.range.start.line + 1, params.range.end.line + 1)
        return [conversion.to_inlay_hint(hint, shot.source, self.abilities.encoding, self.uri) for hint in hints]

    async def code_lenses(self, params: types.CodeLensParams) -> list[types.CodeLens]:
        """Lenses of a document."""
        path = self.path(params.text_document.uri)
        if path is None:
            return []
        shot = await self._snapshot(path)
        lenses = features.code_lenses(shot)
        return [conversion.to_code_lens(lens, shot.source, self.abilities.encoding, self.uri) for lens in lenses]

    async def hover(self, params: types.HoverParams) -> types.Hover | None:
        """What is known at a position."""
        path = self.path(params.text_document.uri)
        if path is None:
            return None
        shot = await self._snapshot(path)
        line = params.position.line + 1
        if line > len(shot.source.lines):
            return None
        for panel in self._panels.values():
            panel.highlight(path, line)
        column = code_points_of(shot.source.lines[line - 1], params.position.character, self.abilities.encoding)
        hover = features.hover(shot, line, column)
        if hover is None:
            return None
        return conversion.to_hover(
            hover,
            shot.source,
            self.abilities.encoding,
            markdown=self.abilities.markdown_hover,
            renders_tables=self._client_name not in _RAW_TABLES,
        )

    async def code_actions(self, params: types.CodeActionParams) -> list[types.CodeAction | types.Command]:
        """What can be done on some lines."""
        path = self.path(params.text_document.uri)
        if path is None:
            return []
        shot = await self._snapshot(path)
        # Editors ask where the cursor is put.
        for panel in self._panels.values():
            panel.highlight(path, params.range.start.line + 1)
        found: list[types.CodeAction | types.Command] = []
        for action in features.code_actions(shot, params.range.start.line + 1, params.range.end.line + 1):
            if not conversion.wanted(action.kind.value, params.context.only):
                continue
            fixes = action.fixes
            converted = conversion.to_code_action(
                action,
                self.workspace_edit(action.edit) if action.edit is not None else None,
                conversion.to_diagnostic(fixes, self.lines, self.uri, self.abilities) if fixes is not None else None,
                self.uri,
                self.abilities,
            )
            if converted is not None:
                found.append(converted)
        return found

    # The interactive page.

    async def panel(self, session: Session, path: str | None) -> str:
        """Serve the page of a session; its address."""
        owner = self._panels.get(session.root)
        if owner is None:
            owner = self._panels[session.root] = PanelOwner(self, session, path)
        owner.path = path or owner.path
        embedders = self._initialization.get("panelEmbedders") if isinstance(self._initialization, dict) else None
        more = embedders if isinstance(embedders, list) else []
        own = ("'self'", "vscode-webview:", "vscode-file:")
        return await owner.open((*own, *(one for one in more if isinstance(one, str))))

    async def reveal(self, path: str, line: int, *, take_focus: bool) -> None:
        """Show a line (1-based) of a file."""
        position = types.Position(line=line - 1, character=0)
        selection = types.Range(start=position, end=position)
        params = types.ShowDocumentParams(uri=self.uri(path), take_focus=take_focus, selection=selection)
        await self.window_show_document_async(params)

    # Edits.

    def workspace_edit(self, edit: Edit) -> types.WorkspaceEdit:
        """An edit in the client's terms."""
        document = self.documents.at_path(edit.path)
        return conversion.to_workspace_edit(
            conversion.to_text_edit(edit, self.lines(edit.path), self.abilities.encoding),
            self.uri(edit.path),
            document.version if document is not None else None,
            document_changes=self.abilities.document_changes,
        )

    async def apply(self, session: Session, edit: Edit, label: str) -> str | None:
        """Have the client make an edit; None once the text shows it, else why it does not."""
        if not self.abilities.apply_edit:
            return "Your editor does not let language servers edit; choose the code action instead."
        before = session.files.read(edit.path) or b""
        try:
            expected = apply_edit(before, edit)
        except EditConflict as conflict:
            return f"{conflict}."
        params = types.ApplyWorkspaceEditParams(label=label, edit=self.workspace_edit(edit))
        try:
            result = await asyncio.wait_for(asyncio.shield(self.workspace_apply_edit_async(params)), _ANSWER_S)
        except asyncio.TimeoutError:
            return "The editor did not answer."
        except JsonRpcException as error:
            return f"The editor refused: {error}."
        is_open = self.documents.at_path(edit.path) is not None
        if await self._becomes(session, edit.path, expected, _CONFIRM_OPEN_S if is_open else _CONFIRM_CLOSED_S):
            return None
        # Some say that they did what they dropped: the text of an open document has the last word.
        if not is_open and result.applied:
            return None
        return f"The editor did not make the edit: {result.failure_reason or 'the text has changed meanwhile'}."

    async def _becomes(self, session: Session, path: str, expected: bytes, limit_s: float) -> bool:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limit_s
        while session.files.read(path) != expected:
            try:
                await asyncio.wait_for(self._text_changed.wait(), deadline - loop.time())
            except asyncio.TimeoutError:
                return session.files.read(path) == expected
        return True

    async def execute(self, command: str, arguments: list[Any]) -> Any:
        """Carry out one of our commands."""
        return await run_command(self, command, arguments)


class _Refresher:
    """Asks the client to ask again, once for many changes, and never waits long for it."""

    def __init__(self, server: Server, method: str) -> None:
        self._server = server
        self._method = method
        self._busy = False
        self._again = False

    def refresh(self) -> None:
        """Have the client ask again, soon."""
        if self._busy:
            self._again = True
            return
        self._busy = True
        self._server.spawn(self._refresh())

    async def _refresh(self) -> None:
        try:
            while True:
                self._again = False
                try:
                    await asyncio.wait_for(self._server.protocol.send_request_async(self._method), _REFRESH_S)
                except (asyncio.TimeoutError, JsonRpcException) as error:
                    _log.debug("%s: %s", self._method, error or "no answer")
                await asyncio.sleep(_REFRESH_PAUSE_S)
                if not self._again:
                    return
        finally:
            self._busy = False


def _holds(root: str, path: str) -> bool:
    return path_key(path).startswith(path_key(root).rstrip(os.sep) + os.sep)


def _register(server: Server) -> None:
    """Tell pygls of the handlers; what it registers it also declares to the client."""
    feature: Callable[..., Callable[[Any], Any]] = server.feature

    @feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.start(params)

    @feature(types.INITIALIZED)
    async def initialized(params: types.InitializedParams) -> None:
        await server.started()

    @feature(types.TEXT_DOCUMENT_DID_SAVE, types.SaveOptions(include_text=False))
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        server.did_save(params)

    @feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def did_change_configuration(params: types.DidChangeConfigurationParams) -> None:
        server.settings_changed(params.settings)

    @feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(params: types.DidChangeWatchedFilesParams) -> None:
        server.files_changed(params)

    @feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def did_change_workspace_folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        await server.change_folders(params.event)

    @feature(types.SET_TRACE)
    def set_trace(params: types.SetTraceParams) -> None:
        server.apply_log_level()

    @feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def cancel_progress(params: types.WorkDoneProgressCancelParams) -> None:
        server.cancel_progress(params.token)

    @feature(types.TEXT_DOCUMENT_INLAY_HINT, types.InlayHintOptions(resolve_provider=False))
    async def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint]:
        return await server.inlay_hints(params)

    @feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=False))
    async def code_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        return await server.code_lenses(params)

    @feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        return await server.hover(params)

    kinds = [types.CodeActionKind(kind.value) for kind in features.ActionKind]

    @feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds))
    async def code_action(params: types.CodeActionParams) -> list[types.CodeAction | types.Command]:
        return await server.code_actions(params)

    for name in COMMANDS:
        # pygls declares what is registered; what runs is `Server.execute`.
        server.command(name)(lambda *_: None)
