"""The messages between server and worker.

Server to worker, requests: `initialize` (`InitializeParams` -> `InitializeResult`), `run` (`RunSpec` -> `RunResult`),
`cancel` (`RunId` -> null; the run's own reply then comes with status "cancelled"), `shutdown` (null -> null).
Worker to server, notifications: `progress` (`Progress`), `partial` (`Partial`), `output` (`Output`).

One run at a time; a `run` while another is under way is refused. What goes wrong in the user's program is a result
(`RunResult.failure`); an error reply means that the worker or the request is at fault.
"""

import enum
from dataclasses import dataclass

from skyline_lsp.protocol.profile import MemoryEstimate, Peaks, Profile, Sample

PROTOCOL_VERSION = 1
"""Both sides must agree on it exactly: they come from the same installation."""


class Method(str, enum.Enum):
    """Names of the messages."""

    INITIALIZE = "initialize"
    RUN = "run"
    CANCEL = "cancel"
    SHUTDOWN = "shutdown"
    PROGRESS = "progress"
    PARTIAL = "partial"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class InitializeParams:
    """First message of the server."""

    protocol_version: int
    root: str
    """Absolute path of the project's root: what lies below it is project code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitializeResult:
    """What the worker runs in."""

    protocol_version: int
    python_version: str
    executable: str
    torch_version: str | None
    """None where torch is not installed there or can't be imported."""
    problem: str | None
    """Why no run is possible (no torch, torch too old, self-test failed), with what to do; None when all is well."""
    fork: bool
    """Whether runs are forked from the warm worker."""


class EntryKind(str, enum.Enum):
    """How the program is started."""

    PROVIDER = "provider"
    SCRIPT = "script"
    MODULE = "module"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The program to run."""

    kind: EntryKind
    path: str
    """Absolute path of its file."""
    module: str | None = None
    """For `python -m`: the module's name."""
    arguments: tuple[str, ...] = ()
    """What follows the program's name in `sys.argv`."""
    working_directory: str | None = None
    """Absolute; None means the root for a provider, and the root for a script, as a user would start it there."""
    environment: dict[str, str] | None = None
    """Variables added to the worker's environment."""
    iteration: str | None = None
    """For a loop without optimizer: "FILE:LINE", where each run of that line ends an iteration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A literal replaced in memory when its file is compiled or read, as the edit would leave it on disk."""

    path: str
    """Absolute path of the file."""
    start: int
    """Byte offset in the file's bytes of the text to replace."""
    end: int
    old: str
    """What must stand there; the run is refused where something else does."""
    new: str


class Goal(str, enum.Enum):
    """What a run is for."""

    PROFILE = "profile"
    """Everything: iteration time, lines, memory."""
    SAMPLE = "sample"
    """Iteration time and peak memory only."""
    PROVE = "prove"
    """One iteration: which batch size does the model see?"""
    ESTIMATE = "estimate"
    """Memory only, with tensors that have shapes but no data: nothing is allocated or computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """How much to measure."""

    warm_up: int = 2
    """Iterations before the first timed one, at least."""
    min_iterations: int = 5
    max_iterations: int = 50
    time_budget_s: float = 10.0
    """About how long the timed iterations may take together; `min_iterations` are timed even so."""
    record_live_bytes: bool = False
    """Fill `Sample.live_bytes`."""
    record_segments: bool = False
    """Fill `Profile.segments`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """One run of the user's program."""

    run_id: int
    goal: Goal
    entry: Entry
    batch_size: int | None = None
    """For a provider: the argument of `skyline_input_provider`; None leaves its default."""
    overrides: tuple[Override, ...] = ()
    measure: Measure = Measure()
    peaks: Peaks | None = None
    """The device's peaks where they are known already; else a profile measures them."""
    device: str | None = None
    """torch device type to report on; None means the current accelerator, else the CPU."""
    time_limit_s: float | None = None
    """The run is ended, as failed, when it takes longer."""
    autocast: str | None = None
    """Data type, such as "bfloat16": iterations run under `torch.autocast` to it, as an edit would have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunId:
    """Names a run."""

    run_id: int


class Stage(str, enum.Enum):
    """What a run is busy with."""

    STARTING = "starting"
    LOADING = "loading"
    WARMING_UP = "warming_up"
    TIMING = "timing"
    TRACING = "tracing"
    MEMORY = "memory"
    CALIBRATING = "calibrating"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is."""

    run_id: int
    stage: Stage
    message: str
    """For the user, such as "timing iteration 3 of about 12"."""
    fraction: float | None = None
    """0 to 1; None where not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partial:
    """What is known already of the profile under way; its lines may still be empty."""

    run_id: int
    profile: Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Text the user's program wrote to its standard output or standard error."""

    run_id: int | None
    text: str


class FailureKind(str, enum.Enum):
    """Why a run gave no result; decides the remedy that is offered."""

    SYNTAX_ERROR = "syntax_error"
    MISSING_PROVIDER = "missing_provider"
    BAD_PROVIDER = "bad_provider"
    EXCEPTION = "exception"
    OUT_OF_MEMORY = "out_of_memory"
    EXITED = "exited"
    """The program ended by itself before enough iterations were seen."""
    CRASHED = "crashed"
    """The process died: an abort, a signal, the out-of-memory killer."""
    NO_ITERATION = "no_iteration"
    """The program ran to its end without an iteration."""
    TIME_LIMIT = "time_limit"
    CHANGED = "changed"
    """An override's text is not there any more: the file changed meanwhile."""
    ENVIRONMENT = "environment"
    """No torch, a torch too old, a device that isn't there."""
    NEEDS_DATA = "needs_data"
    """With goal ESTIMATE: a line asks for a tensor's values, which are not there."""
    INTERNAL = "internal"
    """A fault of the profiler itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A line of the user's program on the way to a failure."""

    path: str
    """Absolute."""
    line: int
    """1-based."""
    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What went wrong in the user's program, and where."""

    kind: FailureKind
    message: str
    """What happened and what to do, in a sentence or two."""
    frames: tuple[Frame, ...] = ()
    """Project frames, outermost first; the last is where it happened. Empty where not known."""
    traceback: str = ""
    """The whole traceback as Python prints it, our own frames left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport:
    """What the model was seen to be fed."""

    shapes: tuple[tuple[int, ...], ...]
    """Shape of each tensor input of the first module called in the iteration, in training where one was; empty where no
    module was called.
    """
    micro_batches: int = 1
    batch_size: int | None = None
    """Samples in a batch, as seen; None where it could not be told, and for a provider, which is told."""


class Status(str, enum.Enum):
    """How a run ended."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """Reply to `run`."""

    run_id: int
    status: Status
    profile: Profile | None = None
    """With goal PROFILE and status DONE."""
    sample: Sample | None = None
    """With goal SAMPLE or PROFILE and status DONE."""
    estimate: MemoryEstimate | None = None
    """With goal ESTIMATE and status DONE."""
    batch: BatchReport | None = None
    """Whenever an iteration was seen."""
    failure: Failure | None = None
    """With status FAILED; with CANCELLED too, where the line it was at is known."""
