"""What the user has set, read from three places and checked.

In order of weight: the client's `workspace/configuration`, its `initializationOptions`, and `[tool.skyline]` in the
project's pyproject.toml. The last comes with the repository, so it may not decide what is executed: those settings are
refused there, and the user is told.
"""

import enum
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from skyline_lsp.features.advice import AdviceCode
from skyline_lsp.prediction import DeviceSpec, Refusal, parse_device
from skyline_lsp.protocol import RemarkKind

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SECTION = "skyline"


class LogLevel(enum.Enum):
    """How much is written to the log."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    DEBUG = "debug"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfiguration:
    """A named way to start a program."""

    name: str
    program: str | None = None
    """Its file, absolute or relative to the root; None where `module` is set, or where the open file is meant."""
    module: str | None = None
    """For `python -m`."""
    arguments: tuple[str, ...] = ()
    working_directory: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    iteration: str | None = None
    """"FILE:LINE" where each run of that line ends an iteration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting, checked; the defaults are these."""

    python: str | None = None
    """Interpreter of the project; None means that it is looked for."""
    worker_command: tuple[str, ...] = ()
    """What stands before the interpreter, such as `ssh host`."""
    environment: tuple[tuple[str, str], ...] = ()
    """Variables added to the worker's environment."""
    entry_point: str | None = None
    """The program to profile, absolute or relative to the root."""
    run: tuple[RunConfiguration, ...] = ()
    run_configuration: str | None = None
    """Name of the one in use."""
    trusted: bool = True
    """Whether the project's code may be run when the user asks for it."""
    profile_on_save: bool = True
    """After the first explicit run."""
    hints_enabled: bool = True
    hints_threshold_percent: float = 1.0
    """Lines below this share of the iteration get no hint."""
    hints_memory: bool = True
    lenses_enabled: bool = True
    diagnostics_summary: bool = True
    advice_disabled: tuple[str, ...] = ()
    """Codes of advice and remarks that are not shown."""
    prediction_budget_s: float = 60.0
    """How long measuring other batch sizes may take for one prediction."""
    measure_time_budget_s: float = 10.0
    """About how long the timed iterations of a run may take."""
    devices: tuple[DeviceSpec, ...] = ()
    """Devices that aren't here, for which memory and time are to be estimated."""
    device: str | None = None
    """torch device type to report on; None means the current accelerator, else the CPU."""
    time_limit_s: float = 600.0
    """A run that takes longer is ended."""
    log_level: LogLevel = LogLevel.INFO

    @property
    def active_run(self) -> RunConfiguration | None:
        """The run configuration in use; with a single one and none named, that one."""
        if self.run_configuration is None:
            return self.run[0] if len(self.run) == 1 else None
        return next((run for run in self.run if run.name == self.run_configuration), None)


class Source(enum.Enum):
    """Where a setting was found."""

    CONFIGURATION = "the editor's settings"
    INITIALIZATION = "the editor's initialization options"
    PROJECT = "pyproject.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A setting that was not taken over, and why."""

    source: Source
    key: str
    message: str
    """A sentence for the user."""
    line: int | None = None
    """1-based line in pyproject.toml, where the setting is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What came of reading the settings."""

    settings: Settings
    problems: tuple[Problem, ...] = ()


class _Bad(ValueError):
    """A value that does not fit; the message completes "`key` ..."."""


def read_settings(*, configuration: Any = None, initialization: Any = None, pyproject: bytes | None = None) -> Reading:
    """Merge the three sources, setting by setting. A bad value is reported, and the next source or default counts."""
    problems: list[Problem] = []
    table = _project_table(pyproject, problems) if pyproject is not None else {}
    values: dict[str, Any] = {}
    trust: list[bool] = []
    for source, given in (
        (Source.CONFIGURATION, configuration),
        (Source.INITIALIZATION, initialization),
        (Source.PROJECT, table),
    ):
        for key, value in _flatten(_section(given)).items():
            setting = _SETTINGS.get(key)
            if setting is None:
                # Clients keep settings of their own in the section (a trace level, the server's path).
                if source is Source.PROJECT:
                    problems.append(_problem(source, key, f"`{key}` is not a setting of skyline.", pyproject))
                continue
            if source is Source.PROJECT and setting.users_only:
                message = (
                    f"`{key}` decides what is executed, so it is not read from pyproject.toml, which comes with the "
                    "repository. Set it in your editor's settings."
                )
                problems.append(_problem(source, key, message, pyproject))
                continue
            try:
                parsed = setting.parse(value)
            except _Bad as bad:
                message = f"`{key}` in {source.value} {bad}; it is ignored."
                problems.append(_problem(source, key, message, pyproject))
                continue
            if key == "trusted":
                trust.append(parsed)
            else:
                values.setdefault(setting.field, parsed)
    # A workspace's own settings file is part of `configuration`: no source may grant what another denies.
    settings = Settings(**values, trusted=all(trust))
    if settings.run_configuration is not None and settings.active_run is None:
        names = ", ".join(f"`{run.name}`" for run in settings.run) or "none is set"
        message = f"`runConfiguration` names `{settings.run_configuration}`, which is not in `run` ({names})."
        problems.append(Problem(source=Source.CONFIGURATION, key="runConfiguration", message=message))
    return Reading(settings=settings, problems=tuple(problems))


def _section(given: Any) -> Any:
    """Take a client's object with or without the section's name around it."""
    if isinstance(given, Mapping) and isinstance(given.get(SECTION), Mapping):
        return given[SECTION]
    return given


def _flatten(given: Any, prefix: str = "") -> dict[str, Any]:
    """Nested objects to dotted keys, unset (null) values left out."""
    if not isinstance(given, Mapping):
        return {}
    flat: dict[str, Any] = {}
    for name, value in given.items():
        key = prefix + ".".join(_camel_case(part) for part in str(name).split("."))
        if isinstance(value, Mapping) and key not in _SETTINGS:
            flat.update(_flatten(value, f"{key}."))
        elif value is not None:
            flat[key] = value
    return flat


def _camel_case(name: str) -> str:
    """TOML files spell names `profile-on-save` as a rule."""
    return re.sub(r"[-_](\w)", lambda match: match[1].upper(), name)


def _project_table(data: bytes, problems: list[Problem]) -> Any:
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        message = f"pyproject.toml can't be read, so its settings are not used: {error}."
        problems.append(Problem(source=Source.PROJECT, key="", message=message))
        return {}
    tool = document.get("tool")
    return tool.get(SECTION) if isinstance(tool, dict) else None


def _problem(source: Source, key: str, message: str, pyproject: bytes | None) -> Problem:
    line = _line_of(key, pyproject) if source is Source.PROJECT and pyproject is not None else None
    return Problem(source=source, key=key, message=message, line=line)


def _line_of(key: str, data: bytes) -> int | None:
    """Line of a key below `[tool.skyline]`, by its spelling: TOML readers keep no positions."""
    inside = False
    parts = key.split(".")
    for number, text in enumerate(data.decode("utf-8", "replace").split("\n"), start=1):
        if (header := re.match(r"\s*\[+\s*([^\]]*?)\s*\]", text)) is not None:
            names = [_camel_case(name.strip().strip("\"'")) for name in header[1].split(".")]
            inside = names[:2] == ["tool", SECTION]
            if inside and names[2:] and names[2 : 2 + len(parts)] == parts:
                return number
        elif inside and (name := re.match(r"\s*([\w\"'.-]+)\s*=", text)) is not None:
            spelled = [_camel_case(part.strip("\"'")) for part in name[1].split(".")]
            if spelled[0] in (parts[0], parts[-1]):
                return number
    return None


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _Bad(f"must be a text, not {_shown(value)}")
    return value


def _optional_text(value: Any) -> str | None:
    # An empty text is how a settings form says "not set".
    return None if value == "" else _text(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Bad(f"must be true or false, not {_shown(value)}")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise _Bad(f"must be a list of texts, not {_shown(value)}")
    return tuple(value)


def _codes(value: Any) -> tuple[str, ...]:
    codes = _texts(value)
    known = sorted({code.value for code in AdviceCode} | {kind.value for kind in RemarkKind})
    if unknown := [code for code in codes if code not in known]:
        raise _Bad(f"has `{unknown[0]}`, which is none of {', '.join(f'`{code}`' for code in known)}")
    return codes


def _devices(value: Any) -> tuple[DeviceSpec, ...]:
    found = []
    for name in _texts(value):
        device = parse_device(name)
        if isinstance(device, Refusal):
            raise _Bad(f"has `{name}`: {device.reason.removesuffix('.')}")
        found.append(device)
    return tuple({device.name: device for device in found}.values())


def _variables(value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, Mapping):
        raise _Bad(f"must be an object of names and texts, not {_shown(value)}")
    for name, text in value.items():
        if not isinstance(text, (str, int, float)) or isinstance(text, bool) or not name or "=" in name:
            raise _Bad(f"must be an object of names and texts; `{name}` is {_shown(text)}")
    return tuple((str(name), str(text)) for name, text in value.items())


def _number(low: float, high: float, *, low_included: bool) -> Callable[[Any], float]:
    bounds = f"{'from' if low_included else 'above'} {low:g}" + (f" to {high:g}" if math.isfinite(high) else "")

    def parse(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise _Bad(f"must be a number {bounds}, not {_shown(value)}")
        if not low <= value <= high or (value == low and not low_included):
            raise _Bad(f"must be a number {bounds}, not {_shown(value)}")
        return float(value)

    return parse


def _log_level(value: Any) -> LogLevel:
    try:
        return LogLevel(value.lower())
    except (AttributeError, ValueError):
        levels = ", ".join(f'"{level.value}"' for level in LogLevel)
        raise _Bad(f"must be one of {levels}, not {_shown(value)}") from None


def _runs(value: Any) -> tuple[RunConfiguration, ...]:
    if not isinstance(value, Mapping):
        raise _Bad(f"must be an object of named run configurations, not {_shown(value)}")
    return tuple(_run(str(name), item) for name, item in value.items())


def _run(name: str, value: Any) -> RunConfiguration:
    if not isinstance(value, Mapping):
        raise _Bad(f"has `{name}`, which must be an object, not {_shown(value)}")
    taken: dict[str, Any] = {}
    for key, item in value.items():
        if key not in _RUN_SETTINGS:
            known = ", ".join(f"`{known}`" for known in _RUN_SETTINGS)
            raise _Bad(f"has `{name}.{key}`, which is none of {known}")
        field, parse = _RUN_SETTINGS[key]
        if item is None:
            continue
        try:
            taken[field] = parse(item)
        except _Bad as bad:
            raise _Bad(f"has `{name}.{key}`, which {bad}") from None
    if "program" in taken and "module" in taken:
        raise _Bad(f"has `{name}` with both `program` and `module`; give one")
    return RunConfiguration(name=name, **taken)


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


_RUN_SETTINGS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "program": ("program", _text),
    "module": ("module", _text),
    "args": ("arguments", _texts),
    "cwd": ("working_directory", _text),
    "env": ("environment", _variables),
    "iteration": ("iteration", _text),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """How one key is read."""

    field: str
    parse: Callable[[Any], Any]
    users_only: bool = False
    """Whether it decides what is executed, and so is refused from the repository."""


_SETTINGS: dict[str, _Setting] = {
    "python": _Setting(field="python", parse=_optional_text, users_only=True),
    "workerCommand": _Setting(field="worker_command", parse=_texts, users_only=True),
    "env": _Setting(field="environment", parse=_variables, users_only=True),
    "entryPoint": _Setting(field="entry_point", parse=_optional_text, users_only=True),
    "run": _Setting(field="run", parse=_runs, users_only=True),
    "runConfiguration": _Setting(field="run_configuration", parse=_optional_text, users_only=True),
    "trusted": _Setting(field="trusted", parse=_flag, users_only=True),
    "profileOnSave": _Setting(field="profile_on_save", parse=_flag),
    "hints.enabled": _Setting(field="hints_enabled", parse=_flag),
    "hints.thresholdPercent": _Setting(field="hints_threshold_percent", parse=_number(0, 100, low_included=True)),
    "hints.memory": _Setting(field="hints_memory", parse=_flag),
    "lenses.enabled": _Setting(field="lenses_enabled", parse=_flag),
    "diagnostics.summary": _Setting(field="diagnostics_summary", parse=_flag),
    "advice.disabled": _Setting(field="advice_disabled", parse=_codes),
    "predictionBudgetSeconds": _Setting(field="prediction_budget_s", parse=_number(0, math.inf, low_included=False)),
    "measure.timeBudgetSeconds": _Setting(
        field="measure_time_budget_s", parse=_number(0, math.inf, low_included=False)
    ),
    "devices": _Setting(field="devices", parse=_devices),
    "device": _Setting(field="device", parse=_optional_text),
    "timeLimitSeconds": _Setting(field="time_limit_s", parse=_number(0, math.inf, low_included=False)),
    "logLevel": _Setting(field="log_level", parse=_log_level),
}

assert {setting.field for setting in _SETTINGS.values()} == {field.name for field in fields(Settings)}
