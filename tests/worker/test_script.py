"""Training scripts as they are: run as Python runs them, their iterations found, stopped without a trace."""

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from skyline_lsp.protocol import EntryKind, FailureKind, Goal, Measure, Status
from tests.worker.worker_process import Run, Worker, failure_of, line_of, marked_line, spec, worker

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")

NET = """\
import torch
from torch import nn
net = nn.Linear(8, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def train_step(size=4):
    optimizer.zero_grad()
    net(torch.randn(size, 8)).sum().backward()
"""


def run(process: Worker, folder: Path, source: str, name: str = "train.py", **options: Any) -> Run:
    path = folder / name
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    process.initialize(folder)
    return process.run(spec(path, **options))


def check_done(whole: Run) -> Run:
    assert whole.result.status is Status.DONE, whole.result
    return whole


SEEN = """\
import json, os, sys
seen = {
    "name": __name__, "file": __file__, "argv": sys.argv, "path": sys.path[0], "folder": os.getcwd(),
    "main": sys.modules["__main__"].__dict__ is globals(), "package": __package__, "doc": __doc__,
    "spec": __spec__ and __spec__.name, "cached": __cached__, "loader": type(__loader__).__name__,
    "annotations": __annotations__, "builtins": type(__builtins__).__name__, "variable": os.environ.get("SKYLINE_TEST"),
    "excepthook": sys.excepthook is sys.__excepthook__, "stdin": sys.stdin.read(),
    "modules": sorted(name for name in sys.modules if name.startswith("skyline") and "--bare" in sys.argv),
    "nvml": os.environ.get("PYTORCH_NVML_BASED_CUDA_CHECK"),
}
print(json.dumps(seen))
"""


def seen_by_python(arguments: list[str], folder: Path, **variables: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, **variables},
    )
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[0])
    return seen


def seen_by_run(whole: Run) -> dict[str, Any]:
    seen: dict[str, Any] = json.loads(check_done(whole).output.splitlines()[0])
    return seen


def test_script_as_python_runs_it(warm_worker: Worker, tmp_path: Path) -> None:
    """A script sees what it sees under Python itself: names, arguments, path, folder, streams."""
    source = SEEN + NET + "for _ in range(100):\n    train_step()\n    optimizer.step()\n"
    folder = tmp_path / "source"
    folder.mkdir()
    arguments = ("--epochs", "3", "--data", "d")
    whole = run(warm_worker, folder, source, arguments=arguments, working_directory=str(tmp_path))
    expected = seen_by_python([str(folder / "train.py"), *arguments], tmp_path)
    assert seen_by_run(whole) == expected


def test_script_without_a_folder(warm_worker: Worker, tmp_path: Path) -> None:
    """A script runs in the root unless told otherwise."""
    source = SEEN + NET + "for _ in range(100):\n    train_step()\n    optimizer.step()\n"
    assert seen_by_run(run(warm_worker, tmp_path, source))["folder"] == str(tmp_path)


def test_module_as_python_runs_it(warm_worker: Worker, tmp_path: Path) -> None:
    """`python -m package.module` likewise, relative imports included."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "net.py").write_text(NET, encoding="utf-8")
    source = SEEN + "from .net import *\nfor _ in range(100):\n    train_step()\n    optimizer.step()\n"
    whole = run(
        warm_worker,
        tmp_path,
        source,
        "package/train.py",
        kind=EntryKind.MODULE,
        module="package.train",
        arguments=("-x",),
    )
    expected = seen_by_python(["-m", "package.train", "-x"], tmp_path)
    seen = seen_by_run(whole)
    # Python itself names the file of compiled code there, whether or not it is written.
    expected["cached"] = seen["cached"]
    assert seen == expected


def test_missing_module(warm_worker: Worker, tmp_path: Path) -> None:
    """A module that isn't there is said so."""
    failure = failure_of(run(warm_worker, tmp_path, "", kind=EntryKind.MODULE, module="no.such.module"))
    assert "no.such" in failure.message


SPY = """\
from skyline_lsp.worker.measurement import Measurement
log = []
note = log.append
def spy(name):
    usual = getattr(Measurement, name)
    def watched(self):
        print("it:", "".join(log), flush=True)
        log.clear()
        return usual(self)
    setattr(Measurement, name, watched)
spy("begin")
spy("boundary")
"""
"""Prints what the program has noted since the last end of an iteration, whenever the worker sees one."""

ITERATIONS = {
    "one optimizer": (
        """
        for _ in range(100):
            note("f"); train_step(); note("s"); optimizer.step()
        """,
        "fs",
    ),
    "accumulation": (
        """
        for i in range(400):
            note("f"); train_step()
            if i % 4 == 3:
                optimizer.step()
        """,
        "ffff",
    ),
    "scheduler": (
        """
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        for _ in range(100):
            note("f"); train_step(); optimizer.step(); scheduler.step(); note("l")
        """,
        "lf",
    ),
    "two networks": (
        """
        critic = nn.Linear(8, 1)
        critic_optimizer = torch.optim.Adam(critic.parameters())
        for _ in range(100):
            note("d"); critic(torch.randn(4, 8)).sum().backward(); critic_optimizer.step()
            note("g"); train_step(); optimizer.step()
        """,
        "dg",
    ),
    "five critic steps": (
        """
        critic = nn.Linear(8, 1)
        critic_optimizer = torch.optim.Adam(critic.parameters())
        for _ in range(100):
            for _ in range(5):
                note("d"); critic(torch.randn(4, 8)).sum().backward(); critic_optimizer.step()
            note("g"); train_step(); optimizer.step()
        """,
        "dddddg",
    ),
    "unused optimizer": (
        """
        spare = torch.optim.Adam(nn.Linear(8, 1).parameters())
        for _ in range(100):
            note("f"); train_step(); optimizer.step()
        """,
        "f",
    ),
    "closure": (
        """
        optimizer = torch.optim.LBFGS(net.parameters(), max_iter=1)
        def closure():
            note("c"); train_step()
            return net(torch.ones(4, 8)).sum()
        for _ in range(100):
            note("f"); optimizer.step(closure)
        """,
        "fc",
    ),
    "optimizer of the user's": (
        """
        class Mine(torch.optim.SGD):
            def step(self, closure=None):
                note("m")
                return super().step(closure)
        torch.optim.SGD(net.parameters(), lr=0.1)
        optimizer = Mine(net.parameters(), lr=0.1)
        for _ in range(100):
            note("f"); train_step(); optimizer.step()
        """,
        "fm",
    ),
    "optimizer around another": (
        """
        class Twice(torch.optim.Optimizer):
            def __init__(self, inner):
                super().__init__(inner.param_groups, {})
                self.inner = inner
            def step(self):
                note("a"); self.inner.step(); note("b"); self.inner.step()
        optimizer = Twice(optimizer)
        for _ in range(100):
            note("f"); train_step(); optimizer.step()
        """,
        "fab",
    ),
    "scaler": (
        """
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
        for _ in range(100):
            optimizer.zero_grad()
            note("f"); loss = net(torch.randn(4, 8)).sum(); scaler.scale(loss).backward()
            scaler.step(optimizer); scaler.update()
        """,
        "f",
    ),
    "scaler that overflows": (
        """
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
        for _ in range(100):
            optimizer.zero_grad()
            note("f"); loss = net(torch.randn(4, 8)).sum() * float("inf"); scaler.scale(loss).backward()
            scaler.step(optimizer); scaler.update()
        """,
        "f",
    ),
    "compiled optimizer": (
        """
        step = torch.compile(optimizer.step, backend="eager")
        for _ in range(100):
            note("f"); train_step(); step()
        """,
        "f",
    ),
    "comment": (
        """
        for _ in range(100):
            note("a"); train_step()
            note("b"); optimizer.step()
            # skyline: iteration
        """,
        "ab",
    ),
    "comment without optimizer": (
        """
        while True:
            note("a"); net(torch.randn(4, 8));
            # skyline: iteration
        """,
        "a",
    ),
}


@pytest.mark.parametrize("name", ITERATIONS)
def test_iteration(warm_worker: Worker, tmp_path: Path, name: str) -> None:
    """What lies between two ends of iterations is one iteration, whatever the loop looks like."""
    loop, expected = ITERATIONS[name]
    whole = check_done(run(warm_worker, tmp_path, SPY + NET + textwrap.dedent(loop)))
    # The first stretch is the one in which it is found out what an iteration is.
    _, *measured = [line[4:] for line in whole.output.splitlines() if line.startswith("it: ")]
    assert measured == [expected] * 3


def test_iteration_line(warm_worker: Worker, tmp_path: Path) -> None:
    """The setting `iteration` names a line whose every run ends an iteration, in whichever file."""
    (tmp_path / "loop.py").write_text(
        NET + "def forever():\n    while True:\n        net(torch.randn(6, 8))  # HERE\n", encoding="utf-8"
    )
    line = marked_line((tmp_path / "loop.py").read_text(encoding="utf-8"))
    for file in ("loop.py", str(tmp_path / "loop.py")):
        whole = run(warm_worker, tmp_path, "import loop\nloop.forever()", goal=Goal.PROVE, iteration=f"{file}:{line}")
        batch = check_done(whole).result.batch
        assert batch is not None
        assert batch.shapes == ((6, 8),)


@pytest.mark.parametrize(
    ("iteration", "words"),
    [("train.py:400", "No statement"), ("train.py", "FILE:LINE"), ("train.py:0", "No statement")],
)
def test_bad_iteration_line(warm_worker: Worker, tmp_path: Path, iteration: str, words: str) -> None:
    """A line without a statement can't end an iteration."""
    failure = failure_of(run(warm_worker, tmp_path, NET, iteration=iteration))
    assert failure.kind is FailureKind.NO_ITERATION
    assert words in failure.message


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        ("net(torch.randn(4, 8))", FailureKind.NO_ITERATION, "`iteration`"),
        ("if False:\n    print()  # skyline: iteration", FailureKind.NO_ITERATION, "marked"),
        ("train_step(); optimizer.step()", FailureKind.EXITED, "after 1 iteration,"),
        ("for _ in range(2): train_step(); optimizer.step()", FailureKind.EXITED, "after 2 iterations,"),
        (
            "other = torch.optim.SGD(nn.Linear(1, 1).parameters())\ntrain_step(); optimizer.step()",
            FailureKind.EXITED,
            "1 optimizer step,",
        ),
    ],
)
def test_too_few_iterations(warm_worker: Worker, tmp_path: Path, source: str, kind: FailureKind, words: str) -> None:
    """A program that ends before anything could be measured is told why, and what to do."""
    failure = failure_of(run(warm_worker, tmp_path, NET + source))
    assert failure.kind is kind
    assert words in failure.message
    assert line_of(failure) == ("train.py", 1)


def test_program_that_ends_in_time(warm_worker: Worker, tmp_path: Path) -> None:
    """A program that ends by itself after some timed iterations is measured with those; its exit handlers run."""
    source = (
        NET
        + "import atexit\natexit.register(print, 'exit handler')\nfor _ in range(6): train_step(); optimizer.step()\n"
    )
    path = tmp_path / "train.py"
    path.write_text(source, encoding="utf-8")
    warm_worker.initialize(tmp_path)
    asked = spec(path, goal=Goal.PROFILE)
    asked = replace(asked, measure=Measure(warm_up=1, min_iterations=50, max_iterations=50))
    whole = check_done(warm_worker.run(asked))
    assert whole.result.profile is not None
    assert 1 <= whole.result.profile.iteration.iterations < 6
    assert "exit handler" in whole.output


def test_lines_come_before_precision(warm_worker: Worker, tmp_path: Path) -> None:
    """A short program whose iterations differ has its lines and its memory measured; what is left of it is timed."""
    source = NET + "for step in range(40):\n    train_step(4 if step % 2 else 40_000)\n    optimizer.step()\n"
    path = tmp_path / "train.py"
    path.write_text(source, encoding="utf-8")
    warm_worker.initialize(tmp_path)
    asked = spec(path, goal=Goal.PROFILE)
    measure = Measure(warm_up=1, min_iterations=2, max_iterations=1000, time_budget_s=1000.0)
    profile = check_done(warm_worker.run(replace(asked, measure=measure))).result.profile
    assert profile is not None
    assert profile.warnings == ()
    assert profile.lines
    assert profile.iteration.peak_bytes > 0
    assert profile.iteration.iterations > 20


def test_stop_leaves_no_trace(warm_worker: Worker, tmp_path: Path) -> None:
    """When all is measured the program goes no further: no `finally`, no exit handler, no checkpoint half-written; what
    it wrote before is whole, and its temporary folders are gone.
    """
    source = (
        NET
        + """
import atexit, os, sys, tempfile
atexit.register(lambda: open("from-atexit", "w").close())
log = open("log.txt", "w")
folder = tempfile.TemporaryDirectory()
print("folder", folder.name)
try:
    for step in range(1000):
        train_step()
        optimizer.step()
        log.write(f"step {step} done\\n")
        torch.save(net.state_dict(), f"checkpoint-{step}.pt")
finally:
    open("from-finally", "w").close()
"""
    )
    whole = check_done(run(warm_worker, tmp_path, source))
    assert not (tmp_path / "from-atexit").exists()
    assert not (tmp_path / "from-finally").exists()
    lines = (tmp_path / "log.txt").read_text(encoding="utf-8").splitlines()
    assert lines == [f"step {step} done" for step in range(len(lines))]
    assert 0 < len(lines) < 100
    import torch

    checkpoints = list(tmp_path.glob("checkpoint-*.pt"))
    assert len(checkpoints) == len(lines)
    for checkpoint in checkpoints:
        assert set(torch.load(checkpoint)) == {"weight", "bias"}
    assert not Path(whole.output.split("folder ")[1].split()[0]).exists()


LOADER = """
import torch
from torch import nn
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 10_000
    def __getitem__(self, index):
        return torch.ones(8)
def main():
    import multiprocessing
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(Data(), batch_size=16, num_workers=2, multiprocessing_context="{context}")
    told = False
    for batch in loader:
        if not told:
            print("workers", *[child.pid for child in multiprocessing.active_children()])
            told = True
        net(batch).sum().backward()
        optimizer.step()
if __name__ == "__main__":
    main()
"""


@linux
def test_data_loader_workers(tmp_path: Path) -> None:
    """Data loaders with worker processes work as under Python; the workers are gone after the stop, and nothing of them
    is left in shared memory or among temporary files.
    """
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with worker(environment={**os.environ, "TMPDIR": str(temporary)}) as process:
        for context in ("fork", "spawn"):
            whole = check_done(run(process, tmp_path, LOADER.format(context=context)))
            (pids,) = [line.split()[1:] for line in whole.output.splitlines() if line.startswith("workers")]
            assert len(pids) == 2
            assert not any(Path("/proc", pid).exists() for pid in pids)
            assert not any(f"_{pid}_" in name for pid in pids for name in os.listdir("/dev/shm"))
            # torch's own cache of compiled code.
            assert [name for name in os.listdir(temporary) if not name.startswith("torchinductor")] == []


def test_data_loader_worker_that_fails(warm_worker: Worker, tmp_path: Path) -> None:
    """An exception in a data loader's worker process is told at the data set's line."""
    source = LOADER.format(context="fork").replace("return torch.ones(8)", "raise IndexError('no such sample')  # HERE")
    failure = failure_of(run(warm_worker, tmp_path, source))
    assert line_of(failure) == ("train.py", marked_line(source))
    assert failure.message == "IndexError: no such sample"


def test_training_in_other_processes(warm_worker: Worker, tmp_path: Path) -> None:
    """Steps in processes that the program forks are not mistaken for its own."""
    source = NET + (
        "import multiprocessing\n"
        "def train():\n    for _ in range(100): train_step(); optimizer.step()\n    print('trained')\n"
        "process = multiprocessing.get_context('fork').Process(target=train)\n"
        "process.start(); process.join()\n"
    )
    whole = run(warm_worker, tmp_path, source)
    failure = failure_of(whole)
    assert failure.kind is FailureKind.NO_ITERATION
    assert "trained" in whole.output


def test_exception_swallowed_by_the_program(warm_worker: Worker, tmp_path: Path) -> None:
    """A program that catches everything is stopped all the same."""
    source = (
        NET + "while True:\n    try:\n        train_step(); optimizer.step()\n    except BaseException:\n        pass\n"
    )
    check_done(run(warm_worker, tmp_path, source))


def test_profile_of_a_script(warm_worker: Worker, tmp_path: Path) -> None:
    """A script's profile charges its lines."""
    source = NET + "for _ in range(100):\n    train_step()\n    optimizer.step()\n"
    profile = check_done(run(warm_worker, tmp_path, source, goal=Goal.PROFILE)).result.profile
    assert profile is not None
    lines = {line.line for line in profile.lines}
    assert {marked_line(source, "backward()"), marked_line(source, "optimizer.step()")} <= lines


LOADER_OF_8 = """
data = torch.utils.data.TensorDataset(torch.randn(400, 8))
loader = torch.utils.data.DataLoader(data, batch_size=BATCH, num_workers=0)
"""
BATCHES = {
    "data loader": LOADER_OF_8
    + """
for x, in loader:
    net(x).sum().backward(); optimizer.step()
""",
    "validation first": LOADER_OF_8
    + """
with torch.no_grad():
    for x, in torch.utils.data.DataLoader(data, batch_size=100):
        net(x)
while True:
    for x, in loader:
        net(x).sum().backward(); optimizer.step()
""",
    "data loader for sequences": LOADER_OF_8
    + """
for x, in loader:
    net(x.unsqueeze(0).expand(3, -1, -1)).sum().backward(); optimizer.step()
""",
    "no data loader": """
while True:
    net(torch.randn(BATCH, 8)).sum().backward(); optimizer.step()
""",
    "keyword": """
while True:
    net(input=torch.randn(BATCH, 8)).sum().backward(); optimizer.step()
""",
    "sequence first": """
class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lstm = nn.Embedding(10, 8), nn.LSTM(8, 8)
    def forward(self, x):
        return self.lstm(self.embed(x))[0]
net = Language()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
while True:
    net(torch.randint(10, (35, BATCH))).sum().backward(); optimizer.step()
""",
}


@pytest.mark.parametrize("name", BATCHES)
def test_batch_size(warm_worker: Worker, tmp_path: Path, name: str) -> None:
    """The size of a script's training batch is found."""
    whole = check_done(run(warm_worker, tmp_path, NET + BATCHES[name].replace("BATCH", "6")))
    assert whole.result.sample is not None
    assert whole.result.sample.batch_size == 6


MICRO_BATCHES = {
    "one batch": ("train_step(); optimizer.step()", 1),
    "accumulation without a loader": (
        "for _ in range(3): net(torch.randn(4, 8)).sum().backward()\n    optimizer.step()",
        3,
    ),
    "two losses": (
        "y = net(torch.randn(4, 8)); y.sum().backward(retain_graph=True); y.mean().backward(); optimizer.step()",
        1,
    ),
    "two views of a batch": ("x = torch.randn(4, 8); (net(x) + net(-x)).sum().backward(); optimizer.step()", 1),
    "closure": ("optimizer.step(lambda: [train_step() for _ in range(3)] and None)", 1),
    "accumulation": ("for _ in range(3): net(next(batches)[0]).sum().backward()\n    optimizer.step()", 3),
    "prefetched": ("net(ahead[0]).sum().backward(); optimizer.step(); ahead = next(batches)", 1),
    "chunks of a batch": ("for part in next(batches)[0].chunk(2): net(part).sum().backward()\n    optimizer.step()", 1),
    "validation": (
        """train_step(); net(next(batches)[0]).sum().backward()
    for _ in range(3 * (step % 4 == 3)): next(valid)
    net(next(batches)[0]).sum().backward()
    optimizer.step()""",
        2,
    ),
    "critic": (
        """for _ in range(2): critic(net(torch.randn(4, 8))).sum().backward()
    critic_optimizer.step()
    critic(net(torch.randn(4, 8))).sum().backward(); optimizer.step()""",
        1,
    ),
}
"""What an iteration does, and how many batches that is."""

MICRO_BATCH_DATA = """
critic = nn.Linear(2, 1)
def endless():
    data = torch.utils.data.TensorDataset(torch.randn(64, 8))
    loader = torch.utils.data.DataLoader(data, batch_size=4)
    while True:
        yield from loader
batches, valid = endless(), endless()
"""


@pytest.mark.parametrize("name", MICRO_BATCHES)
def test_micro_batches(warm_worker: Worker, tmp_path: Path, name: str) -> None:
    """Batches of an iteration are counted where they are loaded, else by what goes through the model and back."""
    loop, expected = MICRO_BATCHES[name]
    source = NET + MICRO_BATCH_DATA
    if "critic" in loop:
        source += "critic_optimizer = torch.optim.Adam(critic.parameters())\n"
    if "ahead" in loop:
        source += "ahead = next(batches)\n"
    source += f"for step in range(1000):\n    {loop}\n"
    profile = check_done(run(warm_worker, tmp_path, source, goal=Goal.PROFILE)).result.profile
    assert profile is not None
    assert (profile.batch_size, profile.micro_batches) == (4, expected)
    samples = 4 * expected
    assert profile.iteration.samples_per_second == pytest.approx(1000 * samples / profile.iteration.run_time_ms)


def test_sample_tells_what_the_model_is_fed(warm_worker: Worker, tmp_path: Path) -> None:
    """A run that measures time and memory alone has the shapes of a training batch too, not of validation."""
    source = NET + (
        "while True:\n    with torch.no_grad():\n        net(torch.randn(100, 8))\n"
        "    for _ in range(2):\n        train_step(6)\n    optimizer.step()\n"
    )
    batch = check_done(run(warm_worker, tmp_path, source)).result.batch
    assert batch is not None
    assert batch.shapes == ((6, 8),)
    assert batch.micro_batches == 2


def test_no_batch(warm_worker: Worker, tmp_path: Path) -> None:
    """A program that calls no module has no batch size; nothing goes on looking for one."""
    source = (
        "import sys, torch\nw = torch.nn.Parameter(torch.zeros(2))\noptimizer = torch.optim.SGD([w], lr=0.1)\n"
        "for _ in range(100):\n    w.sum().backward()\n    optimizer.step()\n"
        "    print('watched by', sys.getprofile())\n"
    )
    whole = check_done(run(warm_worker, tmp_path, source))
    assert whole.result.sample is None
    assert whole.output.splitlines()[-1] == "watched by None"


def test_compiled_model_stays_whole(warm_worker: Worker, tmp_path: Path) -> None:
    """Watching for iterations and batches neither splits a compiled model's graph nor has it compiled again."""
    source = (
        NET
        + """
import torch._dynamo.utils as dynamo
net = torch.compile(net, backend="eager")
for _ in range(100):
    train_step()
    optimizer.step()
    print("graphs", dynamo.counters["stats"]["unique_graphs"], "breaks", len(dynamo.counters["graph_break"]))
"""
    )
    whole = check_done(run(warm_worker, tmp_path, source))
    assert {line for line in whole.output.splitlines() if line.startswith("graphs")} == {"graphs 1 breaks 0"}
    assert whole.result.sample is not None
    assert whole.result.sample.batch_size == 4
