"""A worker that needs no torch: it speaks the real protocol from a real process, and makes its numbers up.

The test's own program says what happens, in comments: `# cost FORWARD BACKWARD BYTES` is what a line costs at any
batch size, and `# worker: VERB ...` is done when the file is run. Iteration time is 10 ms + 0.5 ms a sample, peak
memory 1 MB + 100 kB a sample. `worker.json` in the root says how to answer `initialize`.
"""

import hashlib
import json
import os
import re
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from skyline_lsp.protocol import (
    PROTOCOL_VERSION,
    Decoder,
    Device,
    Failure,
    FailureKind,
    Frame,
    Goal,
    InitializeResult,
    Iteration,
    LineCost,
    Memory,
    Method,
    Output,
    Partial,
    Profile,
    Progress,
    RpcError,
    RunResult,
    RunSpec,
    Sample,
    Stage,
    Status,
    Workload,
    encode,
    from_json,
    notification,
    reply,
    reply_error,
    to_json,
)

COST = re.compile(r"# cost ([\d.]+) ([\d.]+) (\d+)")
VERB = re.compile(r"# worker: (\w+) ?(.*)")


class Worker:
    """Answers messages; a run happens on a thread of its own, so that `cancel` is heard."""

    def __init__(self) -> None:
        self.root = Path()
        self.lock = threading.Lock()
        self.cancelled = threading.Event()
        self.busy = False
        self.script: dict[str, object] = {}

    def send(self, message: dict[str, object]) -> None:
        with self.lock:
            sys.stdout.buffer.write(encode(message))
            sys.stdout.buffer.flush()

    def tell(self, method: Method, value: object) -> None:
        self.send(notification(method.value, to_json(value)))

    def serve(self) -> None:
        decoder = Decoder()
        while data := os.read(0, 65536):
            for message in decoder.feed(data):
                self.answer(message)

    def answer(self, message: dict[str, object]) -> None:
        method, identity = message["method"], message["id"]
        assert isinstance(identity, int)
        params = message["params"]
        if method == "initialize":
            assert isinstance(params, dict)
            self.root = Path(params["root"])
            script = self.root / "worker.json"
            self.script = json.loads(script.read_text()) if script.exists() else {}
            if self.script.get("silent"):
                return
            if greeting := self.script.get("greeting"):
                with self.lock:
                    sys.stdout.write(f"{greeting}\n")
                    sys.stdout.flush()
            print("worker is up", file=sys.stderr, flush=True)
            self.send(reply(identity, to_json(self.introduction())))
        elif method == "run":
            if self.busy:
                self.send(reply_error(identity, RpcError("a run is under way")))
                return
            self.cancelled.clear()
            self.busy = True
            threading.Thread(target=self.run, args=(identity, from_json(RunSpec, params)), daemon=True).start()
        elif method == "cancel":
            if not self.script.get("deaf"):
                self.cancelled.set()
                self.send(reply(identity, None))
        elif method == "shutdown":
            self.send(reply(identity, None))
            os._exit(0)

    def introduction(self) -> InitializeResult:
        problem = self.script.get("problem")
        version = self.script.get("version", PROTOCOL_VERSION)
        assert problem is None or isinstance(problem, str)
        assert isinstance(version, int)
        return InitializeResult(
            protocol_version=version,
            python_version="3.11.7",
            executable=sys.executable,
            torch_version="2.13.0",
            problem=problem,
            fork=False,
        )

    def run(self, identity: int, spec: RunSpec) -> None:
        try:
            result = self.result(spec)
        except Exception as error:
            self.send(reply_error(identity, RpcError(repr(error))))
            raise
        self.busy = False
        self.send(reply(identity, to_json(result)))

    def result(self, spec: RunSpec) -> RunResult:
        with open(self.root / "runs.jsonl", "a", encoding="utf-8") as journal:
            journal.write(json.dumps(to_json(spec)) + "\n")
        path = Path(spec.entry.path)
        data = path.read_bytes()
        for override in spec.overrides:
            assert data[override.start : override.end].decode() == override.old
            if override.path == spec.entry.path:
                data = data[: override.start] + override.new.encode() + data[override.end :]
        text = data.decode()
        self.tell(Method.PROGRESS, Progress(run_id=spec.run_id, stage=Stage.LOADING, message="loading", fraction=0.1))
        for number, line in enumerate(text.splitlines(), start=1):
            if (verb := VERB.search(line)) is not None:
                ended = self.do(spec, verb[1], verb[2], number)
                if ended is not None:
                    return ended
        found = re.search(r"batch_size\s*=\s*(\d+)", text)
        batch_size = spec.batch_size or (int(found[1]) if found else 1)
        run_time_ms, peak_bytes = 10 + 0.5 * batch_size, 1_000_000 + 100_000 * batch_size
        sample = Sample(
            batch_size=batch_size, run_time_ms=run_time_ms, spread_ms=0.1, iterations=5, peak_bytes=peak_bytes
        )
        if spec.goal is not Goal.PROFILE:
            return RunResult(run_id=spec.run_id, status=Status.DONE, sample=sample)
        profile = self.profile(path, data, batch_size, run_time_ms, peak_bytes)
        self.tell(Method.PARTIAL, Partial(run_id=spec.run_id, profile=profile))
        return RunResult(run_id=spec.run_id, status=Status.DONE, profile=profile, sample=sample)

    def do(self, spec: RunSpec, verb: str, argument: str, number: int) -> RunResult | None:
        frame = Frame(path=spec.entry.path, line=number, function="<module>")
        if verb == "print":
            self.tell(Method.OUTPUT, Output(run_id=spec.run_id, text=argument + "\n"))
        elif verb == "die":
            print("dying now", file=sys.stderr, flush=True)
            os._exit(int(argument or 1))
        elif verb == "raise":
            failure = Failure(
                kind=FailureKind.EXCEPTION, message=argument, frames=(frame,), traceback=f"Traceback: {argument}"
            )
            return RunResult(run_id=spec.run_id, status=Status.FAILED, failure=failure)
        elif verb == "block":
            self.tell(Method.PROGRESS, Progress(run_id=spec.run_id, stage=Stage.TIMING, message="blocked"))
            self.cancelled.wait()
            return RunResult(run_id=spec.run_id, status=Status.CANCELLED)
        return None

    def profile(self, path: Path, data: bytes, batch_size: int, run_time_ms: float, peak_bytes: int) -> Profile:
        relative = path.relative_to(self.root).as_posix()
        lines = tuple(
            LineCost(
                path=relative,
                line=number,
                self_forward_ms=float(cost[1]),
                self_backward_ms=float(cost[2]),
                forward_ms=float(cost[1]),
                backward_ms=float(cost[2]),
                self_activation_bytes=int(cost[3]),
                activation_bytes=int(cost[3]),
                invocations=1,
            )
            for number, line in enumerate(data.decode().splitlines(), start=1)
            if (cost := COST.search(line)) is not None
        )
        return Profile(
            device=Device(kind="cpu", name="made up", memory_bytes=64_000_000),
            workload=Workload(kind="provider", path=relative),
            batch_size=batch_size,
            iteration=Iteration(
                run_time_ms=run_time_ms,
                spread_ms=0.1,
                iterations=5,
                samples_per_second=1000 * batch_size / run_time_ms,
                peak_bytes=peak_bytes,
            ),
            untracked_ms=run_time_ms - sum(line.self_forward_ms + line.self_backward_ms for line in lines),
            memory=Memory(
                weights_bytes=400_000,
                gradients_bytes=400_000,
                optimizer_bytes=0,
                activations_bytes=peak_bytes - 800_000,
                other_bytes=0,
            ),
            lines=lines,
            tree=(),
            torch_version="2.13.0",
            python_version="3.11.7",
            files={relative: hashlib.sha256(path.read_bytes()).hexdigest()},
        )


if __name__ == "__main__":
    Worker().serve()
