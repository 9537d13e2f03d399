"""The worker's client against a real process that speaks the protocol."""

import asyncio
import json
import sys
from pathlib import Path

import psutil
import pytest

from skyline_lsp.protocol import Entry, EntryKind, Goal, InitializeResult, Output, Progress, RunResult, RunSpec, Status
from skyline_lsp.server.worker_client import Limits, WorkerClient, WorkerDied, WorkerError

FAKE = Path(__file__).with_name("fake_worker.py")
LIMIT_S = 30.0


class Client(WorkerClient):
    """A client of the made-up worker in a project with one program."""

    def __init__(self, root: Path, program: str = "", **more) -> None:
        self.program = root / "program.py"
        self.program.write_text(program)
        self.output: list[str] = []
        self.logged: list[str] = []
        super().__init__(
            **{
                "python": sys.executable,
                "main": FAKE,
                "root": str(root),
                "on_output": self.note_output,
                "on_log": self.logged.append,
                **more,
            }
        )

    def note_output(self, output: Output) -> None:
        self.output.append(output.text)

    def spec(self) -> RunSpec:
        return RunSpec(run_id=0, goal=Goal.PROFILE, entry=Entry(kind=EntryKind.PROVIDER, path=str(self.program)))

    async def run_program(self, **callbacks) -> RunResult:
        return await asyncio.wait_for(self.run(self.spec(), **callbacks), LIMIT_S)


def blocked(event: asyncio.Event):
    def on_progress(progress: Progress) -> None:
        if progress.message == "blocked":
            event.set()

    return on_progress


async def test_a_run_reports_and_ends(tmp_path: Path) -> None:
    """Progress and partial results on the way, output and the worker's own lines apart, then the result."""
    client = Client(tmp_path, "x = 1  # cost 1 2 3\n# worker: print hello\n")
    progress: list[Progress] = []
    partial: list[object] = []
    result = await client.run_program(on_progress=progress.append, on_partial=partial.append)
    assert result.status is Status.DONE
    assert result.profile is not None
    assert [line.line for line in result.profile.lines] == [1]
    assert [p.message for p in progress] == ["loading"]
    assert len(partial) == 1
    assert client.output == ["hello\n"]
    await client.close()
    assert client.logged == ["worker is up"]
    assert client.info is None


async def test_two_runs_share_one_worker(tmp_path: Path) -> None:
    """Starting up is paid once."""
    client = Client(tmp_path)
    first, second = await client.run_program(), await client.run_program()
    assert (first.run_id, second.run_id) == (1, 2)
    await client.close()
    assert client.logged == ["worker is up"]


async def test_the_end_of_the_worker_is_told_and_the_next_run_works(tmp_path: Path) -> None:
    """With how it ended and what it wrote last."""
    client = Client(tmp_path, "# worker: die 7\n")
    with pytest.raises(WorkerDied, match=r"exited with code 7(.|\n)*dying now"):
        await client.run_program()
    client.program.write_text("")
    assert (await client.run_program()).status is Status.DONE
    await client.close()


async def test_a_worker_that_ended_while_idle_is_started_again(tmp_path: Path) -> None:
    """Unseen by who runs something."""
    client = Client(tmp_path)
    await client.run_program()
    (child,) = psutil.Process().children()
    child.kill()
    assert (await client.run_program()).status is Status.DONE
    await client.close()


async def test_a_run_is_cancelled(tmp_path: Path) -> None:
    """And the worker lives on."""
    client = Client(tmp_path, "# worker: block\n")
    event = asyncio.Event()
    run = asyncio.create_task(client.run_program(on_progress=blocked(event)))
    await asyncio.wait_for(event.wait(), LIMIT_S)
    await client.cancel()
    assert (await run).status is Status.CANCELLED
    assert client.info is not None
    await client.cancel()
    await client.close()


async def test_cancelling_the_task_cancels_the_run(tmp_path: Path) -> None:
    """So that nothing of it is left when the await ends."""
    client = Client(tmp_path, "# worker: block\n")
    event = asyncio.Event()
    run = asyncio.create_task(client.run_program(on_progress=blocked(event)))
    await asyncio.wait_for(event.wait(), LIMIT_S)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    client.program.write_text("")
    assert (await client.run_program()).status is Status.DONE
    assert client.info is not None
    await client.close()


async def test_a_worker_deaf_to_cancel_is_killed(tmp_path: Path) -> None:
    """The run then ends as one whose worker died."""
    (tmp_path / "worker.json").write_text(json.dumps({"deaf": True}))
    client = Client(tmp_path, "# worker: block\n", limits=Limits(cancel_s=0.2))
    event = asyncio.Event()
    run = asyncio.create_task(client.run_program(on_progress=blocked(event)))
    await asyncio.wait_for(event.wait(), LIMIT_S)
    await client.cancel()
    with pytest.raises(WorkerDied):
        await run
    await client.close()


@pytest.mark.parametrize(
    ("script", "message"), [({"version": 999}, "speaks version 999"), ({"silent": True}, "did not answer `initialize`")]
)
async def test_a_worker_that_does_not_start_well_is_refused(tmp_path: Path, script: dict, message: str) -> None:
    """Another version, or none within the limit; nothing of it stays behind."""
    (tmp_path / "worker.json").write_text(json.dumps(script))
    client = Client(tmp_path, limits=Limits(start_s=1.0 if "silent" in script else LIMIT_S))
    with pytest.raises(WorkerError, match=message):
        await client.start()
    assert client.info is None
    await client.close()


async def test_noise_before_the_first_message_is_passed_over(tmp_path: Path) -> None:
    """As a login shell behind `ssh` makes it."""
    (tmp_path / "worker.json").write_text(json.dumps({"greeting": "Welcome!\n{not json"}))
    client = Client(tmp_path)
    assert isinstance(await client.start(), InitializeResult)
    await client.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"python": "/nowhere/python"}, "can't be started with `/nowhere/python"),
        ({"prefix": ["/nowhere/ssh", "host"]}, "Check the settings `python` and `workerCommand`"),
        ({"main": Path("/nowhere/worker.py")}, "exited with code 2"),
    ],
)
async def test_a_command_that_can_not_be_started_says_so(tmp_path: Path, options: dict, message: str) -> None:
    """With what was tried and what to check."""
    client = Client(tmp_path, **options)
    with pytest.raises(WorkerError, match=message):
        await client.start()


async def test_the_environment_reaches_the_worker(tmp_path: Path) -> None:
    """Added to the server's own."""
    client = Client(tmp_path, environment={"SKYLINE_TEST": "1"})
    await client.start()
    (child,) = psutil.Process().children()
    assert child.environ()["SKYLINE_TEST"] == "1"
    assert "PATH" in child.environ()
    await client.close()
