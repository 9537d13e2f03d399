"""The commands that run a program, on small programs: what they print, and how they end."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

ENTRY = """\
import sys

import torch
from model import Net

print("building")


def skyline_model_provider():
    return Net()


def skyline_input_provider(batch_size=4):
    return (torch.randn(batch_size, 64),)


def skyline_iteration_provider(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def iteration(x):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    return iteration
"""
MODEL = """\
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 256)
        self.second = nn.Linear(256, 8)

    def forward(self, x):
        x = self.first(x)
        return self.second(x)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with a provider file; few iterations are timed."""
    (tmp_path / "pyproject.toml").write_text("[tool.skyline]\nmeasure.timeBudgetSeconds = 0.05\n")
    (tmp_path / "entry.py").write_text(ENTRY)
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def run_in(project: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run one command as a shell would."""
    return subprocess.run(
        [sys.executable, "-m", "skyline_lsp", *arguments], cwd=project, capture_output=True, text=True, timeout=150
    )


def check_json(project: Path, *arguments: str) -> Any:
    """The command ends well, prints one JSON value and nothing else, and its progress to standard error."""
    done = run_in(project, *arguments, "--json", "--verbose")
    assert done.returncode == 0, done.stderr
    assert "starting" in done.stderr
    return json.loads(done.stdout)


def check_failure(project: Path, source: str, *expected: str) -> None:
    """With `source` as the program, `profile` ends with code 1, prints nothing, and says where it failed."""
    (project / "entry.py").write_text(source)
    done = run_in(project, "profile", "entry.py")
    assert done.returncode == 1
    assert done.stdout == ""
    for text in expected:
        assert text in done.stderr


def test_profile_json_has_the_documented_keys_and_adds_up(project: Path) -> None:
    """`profile --json` is the documented object, and the lines' times and the untracked time are the iteration's."""
    profile = check_json(project, "profile", "entry.py", "--batch-size", "16")
    assert profile["schema"] == 1
    assert profile["device"].keys() >= {"kind", "name", "memory_bytes"}
    assert profile["workload"] == {"kind": "provider", "path": "entry.py"}
    assert profile["batch_size"] == 16
    iteration, memory, lines = profile["iteration"], profile["memory"], profile["lines"]
    assert iteration.keys() >= {"run_time_ms", "spread_ms", "iterations", "samples_per_second", "peak_bytes"}
    assert iteration["samples_per_second"] == pytest.approx(16_000 / iteration["run_time_ms"])
    own = sum(line["self_forward_ms"] + line["self_backward_ms"] for line in lines)
    assert own + profile["untracked_ms"] == pytest.approx(iteration["run_time_ms"])
    assert memory.keys() >= {f"{name}_bytes" for name in ("weights", "gradients", "optimizer", "activations", "other")}
    assert memory["weights_bytes"] == 4 * (64 * 256 + 256 + 256 * 8 + 8)
    assert sum(memory.values()) == iteration["peak_bytes"]
    for line in lines:
        assert line.keys() >= {"path", "line", "forward_ms", "backward_ms", "activation_bytes", "invocations"}
    assert {("model.py", 11), ("model.py", 12), ("entry.py", 22)} <= {(line["path"], line["line"]) for line in lines}


def test_profile_prints_the_source_with_its_costs(project: Path) -> None:
    """The program's own files are printed, costs at the ends of lines; what the program prints goes to stderr."""
    done = run_in(project, "profile", "entry.py")
    assert done.returncode == 0, done.stderr
    assert "batch size 4" in done.stdout.splitlines()[0]
    assert "\x1b" not in done.stdout
    (costly,) = [line for line in done.stdout.splitlines() if "x = self.first(x)" in line]
    assert "ms" in costly or "us" in costly
    assert "building" not in done.stdout
    assert done.stderr == "building\n"


def test_predict_json_has_the_documented_keys(project: Path) -> None:
    """`predict --json` gives what was measured, and each prediction between its bounds."""
    # A step whose time is known to grow with the batch, however busy the machine is.
    source = ENTRY.replace("        optimizer.step()", "        time.sleep(0.002 * len(x))\n        optimizer.step()")
    (project / "entry.py").write_text(source.replace("import sys", "import time"))
    answer = check_json(project, "predict", "entry.py", "--batch-size", "12,3")
    assert {4} < {sample["batch_size"] for sample in answer["samples"]}
    for sample in answer["samples"]:
        assert sample.keys() >= {"batch_size", "run_time_ms", "peak_bytes"}
    assert [prediction["batch_size"] for prediction in answer["predictions"]] == [12, 3]
    for prediction in answer["predictions"]:
        for name in ("run_time_ms", "samples_per_second", "peak_bytes"):
            assert prediction[f"{name}_low"] <= prediction[name] <= prediction[f"{name}_high"]
        assert prediction["run_time_ms"] > 2 * prediction["batch_size"]
        assert prediction["fits"] is True


def test_sites_can_be_proven(project: Path) -> None:
    """The provider's default is found, and running with another value changes what the model is fed."""
    (site,) = check_json(project, "sites", "entry.py", "--prove")
    assert {key: site[key] for key in ("path", "line", "column", "value", "kind", "editable", "proven")} == {
        "path": "entry.py",
        "line": 13,
        "column": 39,
        "value": 4,
        "kind": "provider_default",
        "editable": True,
        "proven": True,
    }
    assert site["reason"]


def test_doctor_finds_all_well(project: Path) -> None:
    """Where everything works, the doctor says with what, and ends with code 0."""
    report = check_json(project, "doctor", "entry.py")
    assert report["problems"] == []
    assert report["root"] == str(project)
    assert report["worker"]["torch_version"]
    assert report["worker"]["device"]["kind"]
    assert report["programs"] == [{"path": "entry.py", "kind": "provider"}]
    assert report["cache"]["writable"] is True


def test_doctor_says_what_is_wrong_with_a_python_without_torch(project: Path, tmp_path: Path) -> None:
    """An interpreter that can't import torch is named, with what to do, and the code is 1."""
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    folder, name = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
    done = run_in(project, "doctor", "--python", str(bare / folder / name))
    assert done.returncode == 1
    (problem,) = [line for line in done.stdout.splitlines() if line.startswith("problem")]
    assert "torch" in problem
    assert "install" in problem


def test_an_exception_is_shown_at_its_line(project: Path) -> None:
    """The failure names file and line first, then the lines of the project that led there."""
    (project / "model.py").write_text(MODEL.replace("self.second(x)", "self.second(x[:, 1:])"))
    check_failure(
        project,
        ENTRY,
        "model.py:12: error: ",
        "  entry.py:22 in ",
        "    12 | return self.second(x[:, 1:])",
    )


def test_a_syntax_error_is_shown_at_its_line(project: Path) -> None:
    """A file that can't be compiled fails at the line that is wrong."""
    check_failure(project, ENTRY + "def broken(:\n", "entry.py:26: error: ")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_interrupting_ends_the_run(project: Path) -> None:
    """Ctrl-C while the program runs ends the program and the command, with code 130."""
    pid_file = project / "pid"
    source = ENTRY.replace(
        "        optimizer.step()",
        f"        import os, threading\n"
        f"        open({str(pid_file)!r}, 'w').write(str(os.getpid()))\n"
        f"        print('waiting', flush=True)\n"
        f"        threading.Event().wait()",
    )
    (project / "entry.py").write_text(source)
    command = subprocess.Popen(
        [sys.executable, "-m", "skyline_lsp", "profile", "entry.py"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert command.stderr is not None
    while (line := command.stderr.readline()) and line != "waiting\n":
        pass
    assert line == "waiting\n"
    command.send_signal(signal.SIGINT)
    _, errors = command.communicate(timeout=60)
    assert command.returncode == 130
    assert "Traceback" not in errors
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)
