"""`workspace/executeCommand`: each command takes at most one JSON object and answers in JSON.

Missing and odd arguments are answered with InvalidParams, what can't be done with RequestFailed; the client shows
either.
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from skyline_lsp.features import Elsewhere, device_sentence
from skyline_lsp.features import command as names
from skyline_lsp.features.advice import HALF, AdviceCode, precision_sentence
from skyline_lsp.features.units import format_bytes, format_ms, format_throughput
from skyline_lsp.prediction import DEVICES as KNOWN_DEVICES
from skyline_lsp.prediction import DeviceSpec, Estimate, Prediction, Refusal, parse_device
from skyline_lsp.prediction.wish import Wish, parse_wish
from skyline_lsp.protocol import Sample, to_json
from skyline_lsp.server.session import Refused, Session

if TYPE_CHECKING:
    from skyline_lsp.server.app import Server

SITES: Final = "skyline.sites"
COSTS: Final = "skyline.costs"
HISTORY: Final = "skyline.history"
DEVICES: Final = "skyline.devices"
_NEAREST: Final = "Whatever belongs to the open file"


async def run_command(server: "Server", name: str, given: list[Any]) -> Any:
    """Carry out a command. Raises `JsonRpcException`."""
    handler = COMMANDS.get(name)
    if handler is None:
        raise JsonRpcInvalidParams(f"There is no command `{name}`.")
    arguments = _Arguments(name, given)
    try:
        return await handler(server, arguments)
    except Refused as refusal:
        raise JsonRpcException(message=str(refusal), code=types.LSPErrorCodes.RequestFailed.value) from refusal


async def _profile(server: "Server", arguments: "_Arguments") -> dict[str, Any]:
    """{uri?|path?, batchSize?} -> status. Answers when the run has begun: its end is told by diagnostics."""
    batch_size = arguments.batch_size(needed=False)
    session, path = await _session(server, arguments)
    return await session.profile(path, batch_size)


async def _cancel(server: "Server", arguments: "_Arguments") -> dict[str, Any]:
    """{uri?|path?} -> {cancelled}."""
    session, _ = await _session(server, arguments)
    return {"cancelled": await session.cancel()}


async def _clear(server: "Server", arguments: "_Arguments") -> None:
    """{uri?|path?} -> null."""
    session, path = await _session(server, arguments)
    await session.clear(path)


async def _predict(server: "Server", arguments: "_Arguments") -> dict[str, Any] | None:
    """{uri?|path?, batchSize, show?, measure?} -> the prediction.

    With `show` the answer is null at once, and the prediction is shown. With `measure` false it comes from what is
    known already, and is {known: false} where that does not tell.
    """
    batch_size = arguments.batch_size(needed=True)
    assert batch_size is not None
    session, path = await _session(server, arguments)
    if arguments.flag("measure", default=True) is False:
        known = session.known(path, batch_size)
        return {"known": False} if known is None else {"known": True, **_as_json(session, path, known)}

    async def show() -> None:
        try:
            prediction = await session.predict(path, batch_size)
        except Refused as refusal:
            server.show(str(refusal), types.MessageType.Warning)
        else:
            server.show(" ".join((_sentence(prediction), *session.problems(path))))

    # Some clients wait for a command's answer and for nothing else meanwhile, and give up after seconds.
    if arguments.flag("show"):
        server.spawn(show())
        return None
    return _as_json(session, path, await session.predict(path, batch_size))


def _as_json(session: Session, path: str | None, prediction: Prediction) -> dict[str, Any]:
    return {
        "batchSize": prediction.batch_size,
        "runTimeMs": to_json(prediction.run_time_ms),
        "samplesPerSecond": to_json(prediction.samples_per_second),
        "peakBytes": to_json(prediction.peak_bytes),
        "fits": prediction.fits,
        "measured": prediction.measured,
        "problems": list(session.problems(path)),
    }


async def _set_batch_size(server: "Server", arguments: "_Arguments") -> dict[str, Any] | None:
    """{uri?|path?, batchSize?, site?: {uri?|path?, line}, choices?} -> {applied, path, line, old, new, reason}.

    Without a batch size the user is asked for one of `choices`; the answer is then null, and comes before theirs.
    """
    session, path = await _session(server, arguments)
    batch_size = arguments.batch_size(needed=False)
    where = arguments.site(server)
    if batch_size is not None:
        return await _edit(server, session, path, batch_size, where)
    choices = arguments.choices()
    if not choices:
        arguments.fail("`batchSize` is missing; give a whole number, such as 32")

    async def ask() -> None:
        answer = await _ask(server, "Set the batch size to", list(choices))
        if answer is None:
            return
        try:
            await _edit(server, session, path, choices[answer], where)
        except Refused as refusal:
            server.show(str(refusal), types.MessageType.Warning)

    server.spawn(ask())
    return None


async def _edit(
    server: "Server", session: Session, path: str | None, batch_size: int, where: tuple[str, int] | None
) -> dict[str, Any]:
    edit = await session.batch_size_edit(path, batch_size, where)
    problem = None
    if edit.new != edit.old:
        problem = await server.apply(session, edit, f"Set batch size to {batch_size}")
    if problem is not None:
        server.show(f"The batch size was not changed. {problem}", types.MessageType.Warning)
    return {
        "applied": problem is None,
        "path": edit.path,
        "uri": server.uri(edit.path),
        "line": edit.line,
        "old": edit.old,
        "new": edit.new,
        "reason": problem,
    }


async def _retune(server: "Server", arguments: "_Arguments") -> dict[str, Any] | None:
    """{uri?|path?, goal, value?, apply?, show?} -> the prediction, `reason`, and the edit as `skyline.setBatchSize`.

    With `apply` false nothing is edited. With `show` the answer is null at once, and the outcome is shown.
    """
    wish = arguments.wish()
    applies = arguments.flag("apply", default=True)
    session, path = await _session(server, arguments)

    async def carry_out() -> dict[str, Any]:
        found = await session.retune(path, wish)
        answer = {**_as_json(session, path, found.prediction), "reason": found.reason}
        if applies:
            answer["edit"] = await _edit(server, session, path, found.batch_size, None)
        return answer

    async def show() -> None:
        try:
            answer = await carry_out()
        except Refused as refusal:
            server.show(str(refusal), types.MessageType.Warning)
        else:
            server.show(answer["reason"])

    if arguments.flag("show"):
        server.spawn(show())
        return None
    return await carry_out()


async def _preview(server: "Server", arguments: "_Arguments") -> dict[str, Any]:
    """{uri?|path?, batchSize} -> the prediction that is shown from now on, marked as predicted."""
    batch_size = arguments.batch_size(needed=True)
    session, path = await _session(server, arguments)
    prediction = await session.preview(path, batch_size)
    assert prediction is not None
    return _as_json(session, path, prediction)


async def _clear_preview(server: "Server", arguments: "_Arguments") -> None:
    """{uri?|path?}: show measured numbers again."""
    session, path = await _session(server, arguments)
    await session.preview(path, None)


async def _estimate(server: "Server", arguments: "_Arguments") -> dict[str, Any] | None:
    """{uri?|path?, device?, batchSize?, show?} -> whether it fits a device that isn't here, and how fast it is there.

    Without a device the user is asked for one; the answer is then null and comes before theirs, as with `show`.
    """
    batch_size = arguments.batch_size(needed=False)
    device = arguments.device()
    session, path = await _session(server, arguments)

    async def show() -> None:
        chosen = device
        if chosen is None:
            offered = {one.name: one for one in _devices_of(session)}
            answer = await _ask(server, "Would it fit which device?", list(offered))
            if answer is None:
                return
            chosen = offered[answer]
        try:
            there, note = await session.estimate(path, chosen, batch_size)
        except Refused as refusal:
            server.show(str(refusal), types.MessageType.Warning)
        else:
            server.show(_device_text(there, note))

    if device is None or arguments.flag("show"):
        server.spawn(show())
        return None
    there, note = await session.estimate(path, device, batch_size)
    return {
        **_device_as_json(there.device),
        "batchSize": there.peak.batch_size,
        "peakBytes": to_json(there.peak.peak_bytes),
        "fits": there.peak.fits,
        "allocated": there.peak.allocated,
        "runTimeMs": to_json(there.time.run_time_ms) if there.time is not None else None,
        "timedBatchSize": there.timed_batch_size,
        "problems": [*([note] if note else []), *there.remarks],
        "text": _device_text(there, note),
    }


async def _devices(server: "Server", arguments: "_Arguments") -> list[dict[str, Any]]:
    """{uri?|path?} -> devices that can be asked about by name, those of the settings first."""
    session, _ = await _session(server, arguments)
    return [_device_as_json(device) for device in _devices_of(session)]


def _devices_of(session: Session) -> tuple[DeviceSpec, ...]:
    return tuple({device.name: device for device in (*session.settings.devices, *KNOWN_DEVICES)}.values())


def _device_as_json(device: DeviceSpec) -> dict[str, Any]:
    return {"device": device.name, "memoryBytes": device.memory_bytes, "source": device.source}


def _device_text(there: Elsewhere, note: str) -> str:
    head = f"Batch size {there.peak.batch_size} on {device_sentence(there)}."
    return " ".join((head, *([note] if note else []), *there.remarks))


async def _costs(server: "Server", arguments: "_Arguments") -> list[dict[str, Any]]:
    """{uri|path} -> each line's inclusive cost where it is now: for clients that draw their own marks."""
    session, path = await _session(server, arguments)
    if path is None:
        arguments.fail("`uri` is missing")
    await session.prepared(path)
    shot = session.snapshot(path)
    whole = shot.profile.iteration.run_time_ms if shot.profile is not None else 0.0
    return [
        {
            "line": line,
            "share": (cost.forward_ms + cost.backward_ms) / whole if whole else 0.0,
            "forwardMs": cost.forward_ms,
            "backwardMs": cost.backward_ms,
            "activationBytes": cost.activation_bytes,
        }
        for line, cost in shot.costs.items()
    ]


async def _history(server: "Server", arguments: "_Arguments") -> list[dict[str, Any]]:
    """{uri?|path?} -> figures of past profiles, oldest first."""
    session, path = await _session(server, arguments)
    results = session.results(path)
    rows = results.history if results is not None else ()
    return [
        {
            "savedAt": row.saved_at,
            "device": row.device_name,
            "batchSize": row.batch_size,
            "runTimeMs": row.run_time_ms,
            "spreadMs": row.spread_ms,
            "samplesPerSecond": row.samples_per_second,
            "peakBytes": row.peak_bytes,
            "predicted": to_json(row.predicted),
        }
        for row in rows
    ]


async def _open_panel(server: "Server", arguments: "_Arguments") -> dict[str, Any]:
    """{uri?|path?, show?} -> {url}; the page is opened in a browser unless `show` is false."""
    session, path = await _session(server, arguments)
    url = await server.panel(session, path)
    if arguments.flag("show", default=True):
        if server.abilities.show_document:
            server.spawn(server.window_show_document_async(types.ShowDocumentParams(uri=url, external=True)))
        else:
            server.show(f"The page is at {url}")
    return {"url": url}


async def _choose_workload(server: "Server", arguments: "_Arguments") -> dict[str, Any] | None:
    """{uri?|path?} -> status; without a file the user is asked, and the answer, which comes before theirs, is null."""
    given = arguments.path(server)
    if given is not None:
        session = server.session_for(given)
        await server.settled(session)
        session.choose(given)
        return session.status(given)
    session, _ = await _session(server, arguments)
    programs = {session.files.relative(point.path): point.path for point in await session.programs()}
    if not programs:
        raise Refused("There is no program in this project that could be profiled.")

    async def ask() -> None:
        answer = await _ask(server, "Profile which program?", [*programs, _NEAREST])
        if answer is not None:
            session.choose(programs.get(answer))

    server.spawn(ask())
    return None


async def _status(server: "Server", arguments: "_Arguments") -> dict[str, Any]:
    """{uri?|path?, show?} -> the state."""
    session, path = await _session(server, arguments)
    status = session.status(path)
    failure = status.get("failure")
    if arguments.flag("show"):
        if failure is not None:
            server.show(failure["message"], types.MessageType.Warning)
        else:
            program = status["workload"]["path"] if status["workload"] is not None else "nothing to profile"
            server.show(f"{program}: {status['state']}")
    return status


async def _sites(server: "Server", arguments: "_Arguments") -> list[dict[str, Any]]:
    """{uri?|path?} -> where the batch size is written, best first."""
    session, path = await _session(server, arguments)
    found = await session.sites(path)
    results = session.results(path)
    return [
        {
            "path": site.path,
            "uri": server.uri(site.path),
            "line": site.line,
            "column": site.column,
            "value": site.value,
            "batchSize": site.batch_size,
            "kind": site.kind.value,
            "name": site.name,
            "editable": site.editable,
            "evaluation": site.evaluation,
            "proven": results.proof(site) if results is not None else None,
            "reason": site.reason,
        }
        for site in found.sites
    ]


async def _show(server: "Server", arguments: "_Arguments") -> None:
    """{uri?|path?, line}: put the editor's cursor there."""
    path, line = arguments.path(server), arguments.line()
    if path is None:
        arguments.fail("`uri` is missing")
    if not server.abilities.show_document:
        raise Refused(f"Your editor can't be asked to show a file; it is {path}, line {line}.")
    # Not waited for: the editor may be waiting for this command's answer.
    server.spawn(server.reveal(path, line, take_focus=True))


async def _measure_advice(server: "Server", arguments: "_Arguments") -> dict[str, Any] | None:
    """{uri?|path?, code, autocast, show?} -> {autocast, before, after, text}, both as measured.

    With `show` the answer is null at once, and the outcome is shown.
    """
    autocast = arguments.autocast()
    session, path = await _session(server, arguments)

    async def show() -> None:
        try:
            before, after = await session.measure_autocast(path, autocast)
        except Refused as refusal:
            server.show(str(refusal), types.MessageType.Warning)
        else:
            server.show(precision_sentence(autocast, before, after))

    if arguments.flag("show"):
        server.spawn(show())
        return None
    before, after = await session.measure_autocast(path, autocast)
    return {
        "autocast": autocast,
        "before": _sample_as_json(before),
        "after": _sample_as_json(after),
        "text": precision_sentence(autocast, before, after),
    }


def _sample_as_json(sample: Sample) -> dict[str, Any]:
    return {
        "batchSize": sample.batch_size,
        "runTimeMs": sample.run_time_ms,
        "spreadMs": sample.spread_ms,
        "iterations": sample.iterations,
        "peakBytes": sample.peak_bytes,
    }


async def _session(server: "Server", arguments: "_Arguments") -> tuple[Session, str | None]:
    """The session that a command is for, and the file it names."""
    path = arguments.path(server)
    session = server.session_for(path) if path is not None else server.any_session()
    if session is None:
        raise Refused("No project is open; open a file of it first.")
    await server.settled(session)
    return session, path


async def _ask(server: "Server", question: str, answers: list[str]) -> str | None:
    params = types.ShowMessageRequestParams(
        type=types.MessageType.Info,
        message=question,
        actions=[types.MessageActionItem(title=answer) for answer in answers],
    )
    chosen = await server.window_show_message_request_async(params)
    return chosen.title if chosen is not None and chosen.title in answers else None


def _sentence(prediction: Prediction) -> str:
    """A prediction for a message."""

    def between(estimate: Estimate, shown: Callable[[float], str]) -> str:
        if prediction.measured:
            return shown(estimate.value)
        return f"{shown(estimate.value)} ({shown(estimate.low)} to {shown(estimate.high)})"

    parts = [
        f"{between(prediction.run_time_ms, format_ms)} an iteration",
        between(prediction.samples_per_second, format_throughput),
    ]
    if prediction.peak_bytes is not None:
        parts.append(f"peak {between(prediction.peak_bytes, format_bytes)}")
    fits = {True: ", fits", False: ", does not fit", None: ""}[prediction.fits]
    return f"Batch size {prediction.batch_size}: {', '.join(parts)}{fits}."


class _Arguments:
    """A command's arguments, taken out one by one. What does not fit raises InvalidParams."""

    def __init__(self, command: str, given: list[Any]) -> None:
        self._command = command
        if len(given) > 1 or (given and not isinstance(given[0], Mapping) and given[0] is not None):
            self.fail('at most one argument is expected, an object such as {"batchSize": 32}')
        self._given: Mapping[str, Any] = given[0] if given and given[0] is not None else {}

    def fail(self, message: str) -> NoReturn:
        """Raise InvalidParams."""
        raise JsonRpcInvalidParams(f"`{self._command}`: {message}.")

    def path(self, server: "Server") -> str | None:
        """The file that is named, by `uri` or else by `path`."""
        return self._path(server, self._given)

    def batch_size(self, *, needed: bool) -> int | None:
        """A whole number from 1."""
        value = self._given.get("batchSize")
        if value is None and not needed:
            return None
        if isinstance(value, float) and value.is_integer():
            # Lua and Emacs Lisp have numbers that are neither.
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            shown = "is missing" if value is None else f"is {value!r}"
            self.fail(f"`batchSize` {shown}; give a whole number from 1, such as 32")
        return value

    def device(self) -> DeviceSpec | None:
        """A device by its name or by its memory; None where none is given."""
        given = self._given.get("device")
        if given is None:
            return None
        if not isinstance(given, str):
            self.fail(f"`device` is {given!r}; a name such as A100-40GB, or memory such as 24GiB, is expected")
        device = parse_device(given)
        if isinstance(device, Refusal):
            self.fail(device.reason.removesuffix("."))
        return device

    def autocast(self) -> str:
        """The data type of advice that can be measured."""
        code, autocast = self._given.get("code"), self._given.get("autocast")
        if code != AdviceCode.MIXED_PRECISION.value:
            self.fail(f"`code` is {code!r}; what can be measured is {AdviceCode.MIXED_PRECISION.value!r}")
        if autocast not in HALF:
            self.fail(f"`autocast` is {autocast!r}; give one of {', '.join(HALF)}")
        return str(autocast)

    def line(self) -> int:
        """A line, from 1."""
        return self._line(self._given)

    def site(self, server: "Server") -> tuple[str, int] | None:
        """Path and line of a batch-size site."""
        site = self._given.get("site")
        if site is None:
            return None
        if not isinstance(site, Mapping):
            self.fail("`site` must be an object with `path` and `line`")
        path = self._path(server, site)
        if path is None:
            self.fail("`site` must be an object with `path` and `line`")
        return path, self._line(site)

    def choices(self) -> dict[str, int]:
        """Batch sizes to choose from: what is shown -> the size."""
        found: dict[str, int] = {}
        for choice in self._given.get("choices") or ():
            size = choice.get("batchSize") if isinstance(choice, Mapping) else choice
            if isinstance(size, (int, float)) and not isinstance(size, bool) and size >= 1:
                title = choice.get("title") if isinstance(choice, Mapping) else None
                found[title if isinstance(title, str) else str(int(size))] = int(size)
        return found

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A switch."""
        value = self._given.get(name, default)
        # Emacs Lisp has one value for false, null and the empty list.
        return default if value is None else value is True

    def wish(self) -> Wish:
        """A goal and its value."""
        goal, value = self._given.get("goal"), self._given.get("value")
        if not isinstance(goal, str):
            self.fail("`goal` is missing; give throughput, memory, maxThroughput or fit")
        if isinstance(value, bool) or not isinstance(value, (int, float, str, type(None))):
            self.fail(f"`value` is {value!r}; a number or a text is expected")
        wish = parse_wish(goal, value)
        if isinstance(wish, Refusal):
            self.fail(wish.reason.removesuffix("."))
        return wish

    def _path(self, server: "Server", given: Mapping[str, Any]) -> str | None:
        uri, path = given.get("uri"), given.get("path")
        if uri is not None:
            found = server.path(uri) if isinstance(uri, str) else None
            if found is None:
                self.fail(f"`uri` is {uri!r}; the URI of a file is expected")
            return found
        if path is None:
            return None
        if not isinstance(path, str) or not os.path.isabs(path):
            self.fail(f"`path` is {path!r}; an absolute path is expected")
        return os.path.realpath(path)

    def _line(self, given: Mapping[str, Any]) -> int:
        line = given.get("line")
        if isinstance(line, float) and line.is_integer():
            line = int(line)
        if not isinstance(line, int) or isinstance(line, bool) or line < 1:
            self.fail(f"`line` is {line!r}; a line from 1 is expected")
        return line


Handler = Callable[["Server", _Arguments], Awaitable[Any]]

COMMANDS: Final[Mapping[str, Handler]] = {
    names.PROFILE: _profile,
    names.CANCEL: _cancel,
    names.CLEAR: _clear,
    names.PREDICT: _predict,
    names.SET_BATCH_SIZE: _set_batch_size,
    names.CHOOSE_WORKLOAD: _choose_workload,
    names.STATUS: _status,
    names.RETUNE: _retune,
    names.PREVIEW: _preview,
    names.CLEAR_PREVIEW: _clear_preview,
    names.OPEN_PANEL: _open_panel,
    names.MEASURE_ADVICE: _measure_advice,
    names.ESTIMATE: _estimate,
    COSTS: _costs,
    DEVICES: _devices,
    HISTORY: _history,
    SITES: _sites,
    names.SHOW: _show,
}
