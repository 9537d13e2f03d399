"""The worker's processes: whatever the user's program does, the host lives, says what happened, and runs the next."""

import os
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

pytest.importorskip("torch")

from skyline_lsp.protocol import FailureKind, Goal, RunResult, Status
from tests.worker.worker_process import Worker, failure_of, line_of, marked_line, spec, worker

linux = pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux only")

HEAD = """\
import os, signal, subprocess, sys, time
import torch
w = torch.nn.Parameter(torch.zeros(2))
optimizer = torch.optim.SGD([w], lr=0.1)
def steps(count):
    for _ in range(count):
        w.sum().backward()
        optimizer.step()
"""


def program(folder: Path, source: str, name: str = "train.py") -> Path:
    """Write a script that begins with HEAD."""
    path = folder / name
    path.write_text(HEAD + textwrap.dedent(source), encoding="utf-8")
    return path


def here(path: Path) -> int:
    return marked_line(path.read_text(encoding="utf-8"))


def check_next_run_works(process: Worker, folder: Path) -> None:
    """The worker still does what it is for."""
    result = process.run(spec(program(folder, "steps(100)", "next.py"))).result
    assert result.status is Status.DONE, result


def check_nothing_left(process: Worker) -> None:
    """The host has no children, living or dead."""
    assert psutil.Process(process.process.pid).children(recursive=True) == []


@pytest.fixture(scope="module", params=["fork", "fresh", "threads"])
def any_worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    """A worker in each of its ways to start processes and to wait for them."""
    flags = {"fork": ["--fork"], "fresh": ["--no-fork"], "threads": ["--no-fork", "--threads"]}[request.param]
    if request.param == "fork" and sys.platform != "linux":
        pytest.skip("forks on Linux only")
    with worker(*flags) as process:
        yield process


def test_output_is_kept_apart(any_worker: Worker, tmp_path: Path) -> None:
    """What the program prints, writes to descriptor 1 or lets a child print is output, and disturbs no message."""
    any_worker.initialize(tmp_path)
    path = program(
        tmp_path,
        """
        print("printed \\u00e9")
        os.write(1, b"written\\n")
        subprocess.run([sys.executable, "-c", "print('echoed')"], check=True)
        print("complained", file=sys.stderr)
        print('{"jsonrpc": "2.0", "id": 1, "result": null}')
        steps(100)
        print("never reached, for the run is stopped before")
        """,
    )
    run = any_worker.run(spec(path))
    assert run.result.status is Status.DONE, run.result
    lines = run.output.splitlines()
    assert {"printed \u00e9", "written", "echoed", "complained"} <= set(lines)
    assert not any("never reached" in line for line in lines)
    check_nothing_left(any_worker)


def test_exception(warm_worker: Worker, tmp_path: Path) -> None:
    """An exception fails the run at the line that raised, with its way there; the log has the traceback."""
    warm_worker.initialize(tmp_path)
    path = program(
        tmp_path,
        """
        def inner():
            raise ValueError("no such thing")  # HERE
        inner()
        """,
    )
    run = warm_worker.run(spec(path))
    failure = failure_of(run)
    assert failure.kind is FailureKind.EXCEPTION
    assert failure.message == "ValueError: no such thing"
    assert line_of(failure) == ("train.py", here(path))
    assert [frame.function for frame in failure.frames] == ["<module>", "inner"]
    assert "ValueError: no such thing" in run.output
    assert "skyline_lsp" not in failure.traceback
    check_next_run_works(warm_worker, tmp_path)


def test_abort(any_worker: Worker, tmp_path: Path) -> None:
    """A program that aborts crashed at the line that did it."""
    any_worker.initialize(tmp_path)
    path = program(tmp_path, "os.abort()  # HERE")
    failure = failure_of(any_worker.run(spec(path)))
    assert failure.kind is FailureKind.CRASHED
    assert "SIGABRT" in failure.message
    assert line_of(failure) == ("train.py", here(path))


@pytest.mark.parametrize(
    "endless", ["time.sleep(1000)", "[None for _ in iter(int, 1)]", "torch.ones(6000, 6000).matrix_power(10**9)"]
)
def test_cancel(warm_worker: Worker, tmp_path: Path, endless: str) -> None:
    """A program that will not end is cancelled at once, wherever it is, and that place is told."""
    check_cancel(warm_worker, tmp_path, endless)


def test_cancel_in_other_ways(any_worker: Worker, tmp_path: Path) -> None:
    """Cancelling works for every kind of process."""
    check_cancel(any_worker, tmp_path, "time.sleep(1000)")


def check_cancel(process: Worker, folder: Path, endless: str) -> None:
    process.initialize(folder)
    path = program(folder, f"print('started', flush=True) or {endless}  # HERE")
    asked = spec(path)
    process.start(asked)
    before = process.until(lambda message: "started" in str(message))
    process.cancel(asked)
    run = process.finish(before)
    failure = failure_of(run, Status.CANCELLED)
    assert line_of(failure) == ("train.py", here(path))
    check_nothing_left(process)
    check_next_run_works(process, folder)


def test_cancel_of_another_run(warm_worker: Worker, tmp_path: Path) -> None:
    """Cancelling a run that is over is answered, and does nothing."""
    warm_worker.initialize(tmp_path)
    asked = spec(program(tmp_path, "steps(100)"))
    assert warm_worker.run(asked).result.status is Status.DONE
    warm_worker.cancel(asked)
    assert warm_worker.reply()["result"] is None


def test_time_limit(warm_worker: Worker, tmp_path: Path) -> None:
    """A run that takes too long fails at the line that it was at."""
    warm_worker.initialize(tmp_path)
    path = program(tmp_path, "time.sleep(1000)  # HERE")
    failure = failure_of(warm_worker.run(spec(path, time_limit_s=1.0)))
    assert failure.kind is FailureKind.TIME_LIMIT
    assert line_of(failure) == ("train.py", here(path))


@pytest.mark.parametrize(
    ("statement", "words"),
    [("sys.exit('no data set')", "no data set"), ("exit(3)", "code 3"), ("os._exit(4)", "code 4")],
)
def test_early_exit(warm_worker: Worker, tmp_path: Path, statement: str, words: str) -> None:
    """A program that exits before it has trained did so at a line, with a code."""
    warm_worker.initialize(tmp_path)
    path = program(tmp_path, f"{statement}  # HERE")
    failure = failure_of(warm_worker.run(spec(path)))
    assert failure.kind is FailureKind.EXITED
    assert words in failure.message
    assert line_of(failure) == ("train.py", here(path))


def test_exit_after_training(warm_worker: Worker, tmp_path: Path) -> None:
    """A program that exits once enough was measured has succeeded."""
    warm_worker.initialize(tmp_path)
    path = program(tmp_path, "steps(5)\nsys.exit(0)")
    result = warm_worker.run(spec(path, goal=Goal.PROFILE)).result
    assert result.status is Status.DONE, result
    assert result.profile is not None


@linux
def test_killed(warm_worker: Worker, tmp_path: Path) -> None:
    """A program that is killed, as the system does when memory runs out, says so."""
    warm_worker.initialize(tmp_path)
    failure = failure_of(warm_worker.run(spec(program(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)"))))
    assert failure.kind is FailureKind.CRASHED
    assert "memory" in failure.message


@linux
def test_segmentation_fault_in_a_thread(warm_worker: Worker, tmp_path: Path) -> None:
    """A crash in a thread of the program is located there."""
    warm_worker.initialize(tmp_path)
    path = program(
        tmp_path,
        """
        import ctypes, threading
        def crash():
            ctypes.string_at(0)  # HERE
        thread = threading.Thread(target=crash)
        thread.start()
        thread.join()
        """,
    )
    failure = failure_of(warm_worker.run(spec(path)))
    assert failure.kind is FailureKind.CRASHED
    assert "SIGSEGV" in failure.message
    assert line_of(failure) == ("train.py", here(path))


@linux
def test_nothing_outlives_a_run(warm_worker: Worker, tmp_path: Path) -> None:
    """Processes that the program leaves behind, even in sessions of their own, end with its run."""
    warm_worker.initialize(tmp_path)
    path = program(
        tmp_path,
        """
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
        print("child", child.pid)
        steps(100)
        """,
    )
    run = warm_worker.run(spec(path))
    assert run.result.status is Status.DONE, run.result
    (pid,) = [int(line.split()[1]) for line in run.output.splitlines() if line.startswith("child")]
    assert not psutil.pid_exists(pid)
    check_nothing_left(warm_worker)


def test_run_does_not_wait_for_pipes(warm_worker: Worker, tmp_path: Path) -> None:
    """The end of the program is noticed although a child of it keeps its pipes open."""
    warm_worker.initialize(tmp_path)
    path = program(tmp_path, "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])\nos._exit(5)")
    failure = failure_of(warm_worker.run(spec(path)))
    assert "code 5" in failure.message


def test_flood_of_output(warm_worker: Worker, tmp_path: Path) -> None:
    """A program that prints without end does not flood the server; the last it printed is kept."""
    warm_worker.initialize(tmp_path)
    path = program(tmp_path, "for i in range(60_000): print('x' * 100)\nprint('the last word')\nsys.exit(1)")
    run = warm_worker.run(spec(path))
    assert len(run.output) < 2_000_000
    assert "left out" in run.output
    assert "the last word" in run.output


def test_unfinished_line(warm_worker: Worker, tmp_path: Path) -> None:
    """A prompt without a line's end is passed on while the program waits."""
    warm_worker.initialize(tmp_path)
    asked = spec(program(tmp_path, "print('working...', end='', flush=True)\ntime.sleep(1000)"))
    warm_worker.start(asked)
    before = warm_worker.until(lambda message: "working..." in str(message))
    warm_worker.cancel(asked)
    assert warm_worker.finish(before).result.status is Status.CANCELLED


def test_busy(warm_worker: Worker, tmp_path: Path) -> None:
    """A second run is refused while one is under way."""
    warm_worker.initialize(tmp_path)
    asked = spec(program(tmp_path, "time.sleep(1000)"))
    warm_worker.start(asked)
    warm_worker.start(spec(tmp_path / "train.py"))
    assert "under way" in warm_worker.reply()["error"]["message"]
    warm_worker.cancel(asked)
    assert warm_worker.finish().result.status is Status.CANCELLED


def test_bad_requests(warm_worker: Worker, tmp_path: Path) -> None:
    """A request that makes no sense gets an error reply, and the next one is served."""
    warm_worker.initialize(tmp_path)
    warm_worker._send("dance", {})
    assert warm_worker.reply()["error"]["code"] == -32601
    warm_worker._send("run", {"run_id": "one"})
    assert warm_worker.reply()["error"]["code"] == -32602
    check_next_run_works(warm_worker, tmp_path)


def test_slow_start_is_told(warm_worker: Worker, tmp_path: Path) -> None:
    """While the program has not trained yet, progress says that and for how long; cancelling works then too."""
    warm_worker.initialize(tmp_path)
    asked = spec(program(tmp_path, "time.sleep(1000)"))
    warm_worker.start(asked)
    before = warm_worker.until(lambda message: "first optimizer step (" in str(message))
    warm_worker.cancel(asked)
    assert warm_worker.finish(before).result.status is Status.CANCELLED


@linux
def test_end_of_input_during_a_run(tmp_path: Path) -> None:
    """When the server is gone, the worker and the program under way end."""
    with worker() as process:
        process.initialize(tmp_path)
        process.start(spec(program(tmp_path, "print(os.getpid(), flush=True)\ntime.sleep(1000)")))
        (*_, output) = process.until(lambda message: message.get("method") == "output")
        pid = int(output["params"]["text"])
        assert process.close(politely=False) == 0
        assert not psutil.pid_exists(pid)


@linux
def test_killed_host(tmp_path: Path) -> None:
    """When the host is killed, so is the program."""
    with worker() as process:
        process.initialize(tmp_path)
        process.start(spec(program(tmp_path, "print(os.getpid(), flush=True)\ntime.sleep(1000)")))
        (*_, output) = process.until(lambda message: message.get("method") == "output")
        child = psutil.Process(int(output["params"]["text"]))
        process.process.kill()
        child.wait(timeout=30)


def test_shutdown(tmp_path: Path) -> None:
    """`shutdown` is answered, then the worker ends; so does an idle one, by itself."""
    # Without torch it starts in no time.
    python = (os.path.realpath(sys.executable), "-S")
    environment = {"PATH": os.environ["PATH"]}
    with worker("--idle-limit", "0.5", python=python, environment=environment) as process:
        process.initialize(tmp_path)
        assert process.process.wait() == 0
    with worker(python=python, environment=environment) as process:
        process._send("shutdown", None)
        assert process.reply()["result"] is None
        assert process.process.wait() == 0


def let_it_import(process: Worker, root: Path) -> None:
    """Leave the host idle until it has imported what it wants to: it tries modules out in a child first."""
    # An answer means that the last run is quite done with.
    process.initialize(root)
    psutil.wait_procs(psutil.Process(process.process.pid).children())
    for _ in range(50):
        # It imports one module between two requests.
        process.initialize(root)


@linux
def test_modules_are_imported_ahead(tmp_path: Path) -> None:
    """What a run imported from outside the project is there, in the parent, for later runs; project files are not."""
    (tmp_path / "helper.py").write_text("value = 1\n", encoding="utf-8")
    source = """
        print("before", "xmlrpc.client" in sys.modules, "helper" in sys.modules)
        import helper, xmlrpc.client
        print("helper", helper.value)
        steps(100)
        """
    with worker() as process:
        process.initialize(tmp_path)
        path = program(tmp_path, source)
        first = process.run(spec(path))
        assert "before False False" in first.output
        (tmp_path / "helper.py").write_text("value = 2\n", encoding="utf-8")
        let_it_import(process, tmp_path)
        second = process.run(spec(path))
        assert "before True False" in second.output
        assert "helper 2" in second.output


@linux
def test_modules_with_threads_are_not_imported_ahead(tmp_path: Path) -> None:
    """A module whose import starts a thread stays out of the parent, which goes on forking."""
    site = tmp_path / "site-packages"
    site.mkdir()
    (site / "thready.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n",
        encoding="utf-8",
    )
    with worker(environment={**os.environ, "PYTHONPATH": str(site)}) as process:
        process.initialize(tmp_path)
        path = program(tmp_path, "print('thready' in sys.modules)\nimport thready\nsteps(100)")
        for _ in range(3):
            run = process.run(spec(path))
            assert run.result.status is Status.DONE, run.result
            assert "False" in run.output
            let_it_import(process, tmp_path)
        assert process.initialize(tmp_path).fork


@linux
def test_environment_of_the_run(warm_worker: Worker, tmp_path: Path) -> None:
    """A run that sets variables gets a process that has had them from its start; others don't see them."""
    warm_worker.initialize(tmp_path)
    path = program(tmp_path, "print(os.environ.get('OMP_NUM_THREADS'), torch.get_num_threads())\nsteps(100)")
    assert "1 1" in warm_worker.run(spec(path, environment={"OMP_NUM_THREADS": "1"})).output
    assert "None" in warm_worker.run(spec(path)).output


@linux
def test_changed_installation(tmp_path: Path) -> None:
    """When a package was installed meanwhile, the run sees it, and the worker makes room for a new one."""
    site = tmp_path / "site-packages"
    site.mkdir()
    with worker(environment={**os.environ, "PYTHONPATH": str(site)}) as process:
        process.initialize(tmp_path)
        path = program(tmp_path, "import fresh_package\nprint('version', fresh_package.version)\nsteps(100)")
        (site / "fresh_package.py").write_text("version = 7\n", encoding="utf-8")
        run = process.run(spec(path))
        assert run.result.status is Status.DONE, run.result
        assert "version 7" in run.output
        assert process.process.wait() == 0


def linked_environment(folder: Path) -> dict[str, str]:
    """An environment in which torch and what it needs are installed, and nothing of the server's."""
    import torch

    site = Path(torch.__file__).parents[1]
    links = folder / "site-packages"
    links.mkdir()
    for name in ("torch", "torchgen", "functorch", "numpy", "numpy.libs", "sympy", "mpmath", "networkx", "jinja2"):
        if (site / name).exists():
            (links / name).symlink_to(site / name)
    for name in ("markupsafe", "filelock", "fsspec", "typing_extensions.py", "setuptools"):
        if (site / name).exists():
            (links / name).symlink_to(site / name)
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(links), "PYTHONNOUSERSITE": "1"}


@linux
def test_environment_without_the_server(tmp_path: Path) -> None:
    """Torch is all that the project's environment needs; nothing of the server's can be imported from there."""
    project = tmp_path / "project"
    project.mkdir()
    python = os.path.realpath(sys.executable)
    with worker("--fork", python=(python, "-S"), environment=linked_environment(tmp_path)) as process:
        assert process.initialize(project).problem is None
        path = program(
            project,
            """
            import importlib.util
            print("found", [name for name in ("pygls", "lsprotocol", "rich") if importlib.util.find_spec(name)])
            print("path", sys.path[0], [folder for folder in sys.path if "skyline" in folder])
            for name in ("device", "project", "measurement"):
                assert importlib.util.find_spec(name) is None
            steps(100)
            """,
        )
        run = process.run(spec(path))
        assert run.result.status is Status.DONE, run.result
        assert "found []" in run.output
        assert f"path {project} []" in run.output


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (None, "not installed"),
        ("__version__ = '2.3.1+cu121'\n", "too old"),
        ("raise OSError('libcudart.so.12: cannot open shared object file')\n", "libcudart"),
    ],
)
def test_torch_that_can_not_be_used(tmp_path: Path, module: str | None, words: str) -> None:
    """Without a torch that works, the worker says what is wrong, and refuses runs with it."""
    if module is not None:
        (tmp_path / "torch.py").write_text(module, encoding="utf-8")
    python = os.path.realpath(sys.executable)
    environment = {"PYTHONPATH": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONNOUSERSITE": "1"}
    with worker(python=(python, "-S"), environment=environment) as process:
        answer = process.initialize(tmp_path)
        assert answer.problem is not None
        assert words in answer.problem
        failure = failure_of(process.run(spec(tmp_path / "train.py")))
        assert failure.kind is FailureKind.ENVIRONMENT
        assert failure.message == answer.problem


def test_result_is_whole(warm_worker: Worker, tmp_path: Path) -> None:
    """The reply to a run is a `RunResult` of that run."""
    warm_worker.initialize(tmp_path)
    asked = spec(program(tmp_path, "steps(100)"))
    result = warm_worker.run(asked).result
    assert isinstance(result, RunResult)
    assert result.run_id == asked.run_id


@linux
def test_accelerator_that_a_fork_breaks(tmp_path: Path) -> None:
    """Where torch says that its device can't be used after the fork, the same run is done by a fresh process."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "def mark():\n    sys.modules['torch'].cuda._is_in_bad_fork = lambda: True\n"
        "os.register_at_fork(after_in_child=mark)\n",
        encoding="utf-8",
    )
    with worker(environment={**os.environ, "PYTHONPATH": str(tmp_path)}) as process:
        assert process.initialize(tmp_path).fork
        run = process.run(spec(program(tmp_path, "print('fresh', torch.cuda._is_in_bad_fork())\nsteps(100)")))
        assert run.result.status is Status.DONE, run.result
        assert "fresh False" in run.output
        assert not process.initialize(tmp_path).fork
