"""Shows the main job in this terminal: an editor's session with the language server, on the ResNet-50 example.

Starts the server as an editor would, opens the files, profiles, and prints what the editor would show: hints at the
ends of lines, lenses above lines, a hover. Then it predicts another batch size and lets the server edit the source; the
edited text stays here, the example is not changed.
"""

import asyncio
import difflib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient
from rich.console import Console
from rich.text import Text

from skyline_lsp.features.units import format_bytes, format_ms, format_range, format_throughput
from skyline_lsp.terminal import Note, annotated_source, print_lines, progress_line, standard_consoles

REPOSITORY = Path(__file__).resolve().parents[1]
EXAMPLE = REPOSITORY / "examples" / "resnet50"
OTHER_BATCH_SIZE = 32
TIME_LIMIT_S = 300.0
"""After that something is wrong: a quiet machine with two cores needs less than a minute."""
LOG = "server.log"
HOVERED = "x = self.stage4(x)"


class Editor(LanguageClient):
    """As much of an editor as the demonstration needs: open texts, edits from the server, progress."""

    def __init__(self) -> None:
        super().__init__("skyline-demo", "1")
        self.texts: dict[str, str] = {}
        self.diagnostics: dict[str, Sequence[types.Diagnostic]] = {}
        self.idle = asyncio.Event()
        self.show_progress: Any = lambda message, fraction: None
        self.show_log: Any = lambda text: None
        self._register()

    def open(self, path: Path) -> str:
        """Open a file; returns its URI."""
        uri = path.as_uri()
        self.texts[uri] = path.read_text(encoding="utf-8")
        self.text_document_did_open(
            types.DidOpenTextDocumentParams(
                text_document=types.TextDocumentItem(uri=uri, language_id="python", version=1, text=self.texts[uri])
            )
        )
        return uri

    async def command(self, name: str, **arguments: Any) -> Any:
        """Have the server carry out a command; returns its answer."""
        params = types.ExecuteCommandParams(command=name, arguments=[arguments])
        return await self.workspace_execute_command_async(params)

    async def hints(self, uri: str) -> dict[int, str]:
        """Line, from 1, to the hint at its end."""
        params = types.InlayHintParams(text_document=types.TextDocumentIdentifier(uri=uri), range=self._whole(uri))
        found = await self.text_document_inlay_hint_async(params) or ()
        return {hint.position.line + 1: label_of(hint) for hint in found}

    async def lenses(self, uri: str) -> dict[int, list[str]]:
        """Line, from 1, to the lenses above it."""
        params = types.CodeLensParams(text_document=types.TextDocumentIdentifier(uri=uri))
        lines: dict[int, list[str]] = {}
        for lens in await self.text_document_code_lens_async(params) or ():
            shown = lens if lens.command is not None else await self.code_lens_resolve_async(lens)
            if shown.command is not None:
                lines.setdefault(shown.range.start.line + 1, []).append(shown.command.title)
        return {line: [" | ".join(titles)] for line, titles in lines.items()}

    async def hover(self, uri: str, line: int) -> str:
        """What hovering a line, from 1, shows."""
        text = self.texts[uri].split("\n")[line - 1]
        position = types.Position(line=line - 1, character=len(text) - len(text.lstrip()))
        params = types.HoverParams(text_document=types.TextDocumentIdentifier(uri=uri), position=position)
        found = await self.text_document_hover_async(params)
        if found is None:
            return ""
        assert isinstance(found.contents, types.MarkupContent)
        return found.contents.value

    def _whole(self, uri: str) -> types.Range:
        last = self.texts[uri].count("\n")
        return types.Range(start=types.Position(line=0, character=0), end=types.Position(line=last, character=0))

    def _register(self) -> None:
        @self.feature(types.WINDOW_WORK_DONE_PROGRESS_CREATE)
        def create(params: types.WorkDoneProgressCreateParams) -> None:
            self.idle.clear()

        @self.feature(types.PROGRESS)
        def progress(params: types.ProgressParams) -> None:
            value = params.value
            kind = value["kind"] if isinstance(value, dict) else value.kind
            if kind == "end":
                self.idle.set()
                return
            message = value.get("message") if isinstance(value, dict) else value.message
            percentage = value.get("percentage") if isinstance(value, dict) else value.percentage
            if message:
                self.show_progress(message, None if percentage is None else percentage / 100)

        @self.feature(types.WINDOW_LOG_MESSAGE)
        def log(params: types.LogMessageParams) -> None:
            self.show_log(params.message)

        @self.feature(types.WINDOW_SHOW_MESSAGE)
        def message(params: types.ShowMessageParams) -> None:
            self.show_log(params.message)

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def diagnostics(params: types.PublishDiagnosticsParams) -> None:
            self.diagnostics[params.uri] = params.diagnostics

        @self.feature(types.WORKSPACE_CONFIGURATION)
        def configuration(params: types.ConfigurationParams) -> list[Any]:
            return [{} for _ in params.items]

        @self.feature(types.WORKSPACE_INLAY_HINT_REFRESH)
        def refresh_hints(*_: Any) -> None:
            return None

        @self.feature(types.WORKSPACE_CODE_LENS_REFRESH)
        def refresh_lenses(*_: Any) -> None:
            return None

        @self.feature(types.CLIENT_REGISTER_CAPABILITY)
        def register(*_: Any) -> None:
            return None

        @self.feature(types.WORKSPACE_APPLY_EDIT)
        def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
            for change in params.edit.document_changes or ():
                if isinstance(change, types.TextDocumentEdit):
                    for edit in change.edits:
                        assert isinstance(edit, (types.TextEdit, types.AnnotatedTextEdit))
                        self._edit(change.text_document.uri, edit)
            for uri, edits in (params.edit.changes or {}).items():
                for edit in edits:
                    self._edit(uri, edit)
            return types.ApplyWorkspaceEditResult(applied=True)

    def _edit(self, uri: str, edit: types.TextEdit | types.AnnotatedTextEdit) -> None:
        lines = self.texts[uri].split("\n")
        start, end = edit.range.start, edit.range.end
        assert start.line == end.line, "the edit of a batch size lies on one line"
        line = lines[start.line]
        lines[start.line] = line[: start.character] + edit.new_text + line[end.character :]
        self.texts[uri] = "\n".join(lines)


def label_of(hint: types.InlayHint) -> str:
    """A hint's text, however it is put together."""
    return hint.label if isinstance(hint.label, str) else "".join(part.value for part in hint.label)


def capabilities() -> types.ClientCapabilities:
    """What this editor can do."""
    return types.ClientCapabilities(
        text_document=types.TextDocumentClientCapabilities(
            hover=types.HoverClientCapabilities(content_format=[types.MarkupKind.PlainText]),
            inlay_hint=types.InlayHintClientCapabilities(),
            code_lens=types.CodeLensClientCapabilities(),
            publish_diagnostics=types.PublishDiagnosticsClientCapabilities(),
        ),
        workspace=types.WorkspaceClientCapabilities(
            apply_edit=True,
            configuration=True,
            workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
            inlay_hint=types.InlayHintWorkspaceClientCapabilities(refresh_support=True),
            code_lens=types.CodeLensWorkspaceClientCapabilities(refresh_support=True),
        ),
        window=types.WindowClientCapabilities(work_done_progress=True),
    )


def heading(console: Console, text: str) -> None:
    """Announce the next act."""
    print_lines(console, [Text(), Text(f"== {text}", style="bold")])


def show(console: Console, text: str, hints: dict[int, str], lenses: dict[int, list[str]]) -> None:
    """Print a source as an editor would show it."""
    notes = {line: Note(text=hint, share=None) for line, hint in hints.items()}
    width = console.width if console.is_terminal else None
    colour = console.color_system is not None
    print_lines(console, annotated_source(text.split("\n"), notes, lenses, width=width, colour=colour))


def prediction_rows(prediction: Any) -> list[str]:
    """The server's answer, whose numbers come with a 90 % interval, as lines to read."""

    def row(name: str, key: str, shown: Callable[[float], str]) -> str:
        estimate = prediction[key]
        if estimate is None:
            return f"{name:<12}unknown"
        value, interval = shown(estimate["value"]), format_range(estimate["low"], estimate["high"], shown)
        return f"{name:<12}{value}" + (f"  ({interval})" if interval != value else "")

    return [
        row("iteration", "runTimeMs", format_ms),
        row("throughput", "samplesPerSecond", format_throughput),
        row("peak memory", "peakBytes", format_bytes),
        f"{'fits':<12}{ {True: 'yes', False: 'no', None: 'unknown'}[prediction['fits']] }",
        *prediction["problems"],
    ]


async def demonstrate(console: Console, errors: Console, folder: Path) -> None:
    """The whole session; `folder` takes the server's log and cache."""
    began = time.perf_counter()
    editor = Editor()
    # A cache of its own: what the user's holds from before would be shown at once, and nothing left to watch.
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    log = str(folder / LOG)
    await editor.start_io(sys.executable, "-m", "skyline_lsp", "--log-file", log, env=environment)
    await editor.initialize_async(
        types.InitializeParams(
            capabilities=capabilities(),
            workspace_folders=[types.WorkspaceFolder(uri=EXAMPLE.as_uri(), name=EXAMPLE.name)],
        )
    )
    editor.initialized(types.InitializedParams())
    model, providers = editor.open(EXAMPLE / "resnet.py"), editor.open(EXAMPLE / "providers.py")

    heading(console, "The user asks for a profile: skyline.profile")
    with progress_line(errors, verbose=True) as line:
        editor.show_progress, editor.show_log = line.update, lambda text: None
        await editor.command("skyline.profile", uri=providers)
        await editor.idle.wait()

    for uri, name in ((providers, "providers.py"), (model, "resnet.py")):
        heading(console, f"{name}, as the editor shows it")
        show(console, editor.texts[uri], await editor.hints(uri), await editor.lenses(uri))

    heading(console, f"Hovering over `{HOVERED}`")
    lines = editor.texts[model].split("\n")
    hovered = next(number for number, text in enumerate(lines, start=1) if text.strip() == HOVERED)
    console.print(Text(await editor.hover(model, hovered)), soft_wrap=True)

    heading(console, f"What would a batch of {OTHER_BATCH_SIZE} cost? skyline.predict")
    with progress_line(errors, verbose=True) as line:
        editor.show_progress = line.update
        prediction = await editor.command("skyline.predict", uri=providers, batchSize=OTHER_BATCH_SIZE)
    print_lines(console, [Text(row) for row in prediction_rows(prediction)])

    heading(console, f"Take it: skyline.setBatchSize {OTHER_BATCH_SIZE}")
    before = editor.texts[providers]
    await editor.command("skyline.setBatchSize", uri=providers, batchSize=OTHER_BATCH_SIZE)
    difference = difflib.unified_diff(
        before.splitlines(), editor.texts[providers].splitlines(), "a/providers.py", "b/providers.py", lineterm=""
    )
    print_lines(console, [Text(row) for row in difference])

    await editor.shutdown_async(None)
    editor.exit(None)
    await editor.stop()
    heading(console, f"Done in {time.perf_counter() - began:.0f} s. The example itself is unchanged.")


def main() -> int:
    """Run the session; says what went wrong where the server does not answer."""
    console, errors = standard_consoles()
    with tempfile.TemporaryDirectory() as folder:
        try:
            asyncio.run(asyncio.wait_for(demonstrate(console, errors, Path(folder)), TIME_LIMIT_S))
        except asyncio.TimeoutError:
            errors.print(f"The demonstration did not end within {TIME_LIMIT_S:.0f} s. The server's log:")
            log = Path(folder) / LOG
            if log.exists():
                errors.print(Text(log.read_text(encoding="utf-8", errors="replace")), soft_wrap=True)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
