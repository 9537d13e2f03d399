"""Reports of a program that really runs, and how the command ends."""

import hashlib
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from skyline_lsp.cli import main
from skyline_lsp.reports import Report, read_json, to_json_text
from tests.features.building import GIB, STEP, profile_of

ENTRY = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 256)
        self.second = nn.Linear(256, 8)

    def forward(self, x):
        x = self.first(x)
        return self.second(x)


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


def run_in(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run `skyline-lsp report` as a shell would."""
    command = [sys.executable, "-m", "skyline_lsp", "report", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=150)


def check_done(folder: Path, *arguments: str, code: int = 0) -> str:
    done = run_in(folder, *arguments)
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with a provider file; few iterations are timed."""
    (tmp_path / "pyproject.toml").write_text("[tool.skyline]\nmeasure.timeBudgetSeconds = 0.05\n")
    (tmp_path / "entry.py").write_text(ENTRY)
    return tmp_path


@pytest.mark.torch
def test_all_reports_of_one_run_say_the_same(project: Path) -> None:
    """Tables, trace, page and JSON come of one run; the trace's own times are the segments'."""
    pytest.importorskip("torch")
    outputs = ("--sqlite", "o.db", "--trace", "t.json", "--html", "p.html", "--json")
    report = read_json(check_done(project, "entry.py", *outputs))
    assert report.sources == {"entry.py": ENTRY}
    profile = report.profile
    with closing(sqlite3.connect(project / "o.db")) as database:
        (run_time_ms,) = database.execute(
            "SELECT sum(forward_ms) + total(backward_ms) + (SELECT untracked_ms FROM iteration) FROM run_time_entries"
        ).fetchone()
        weights = database.execute("SELECT sum(weight_bytes) FROM weight_entries").fetchone()
        operations = {row[0] for row in database.execute("SELECT operation FROM run_time_entries")}
    assert run_time_ms == pytest.approx(profile.iteration.run_time_ms)
    assert weights == (4 * (64 * 256 + 256 + 256 * 8 + 8),)
    assert "x = self.first(x)" in operations
    events = json.loads((project / "t.json").read_text())["traceEvents"]
    own = sum(event["args"]["self_ms"] for event in events if event["ph"] == "X")
    assert own == pytest.approx(sum(segment.duration_ms for segment in profile.segments), rel=1e-3)
    lines = {(event["args"].get("source"), event["cat"]) for event in events if event["ph"] == "X"}
    assert {("x = self.first(x)", "forward"), ("x = self.first(x)", "backward")} <= lines
    assert "x = self.first(x)" in (project / "p.html").read_text(encoding="utf-8")
    assert not [path for path in project.iterdir() if path.name.endswith(".tmp")]


@pytest.mark.torch
def test_revisions_are_measured_without_touching_the_repository(project: Path) -> None:
    """Both versions run; the line that grew is followed past an edit; the peak fails the build with code 3."""
    pytest.importorskip("torch")
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@example.com")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run([*git, *words], cwd=project, check=True)
    wide = ENTRY.replace("256", "2048").replace("        x = self.first", "        # wider\n        x = self.first")
    (project / "entry.py").write_text(wide)
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    arguments = ("entry.py", "--compare", "HEAD", ".", "--runs", "1", "--fail-above", "5%", "--json")
    comparison = json.loads(check_done(project, *arguments, code=3))
    assert comparison["peak_bytes"]["verdict"] == "worse"
    assert {change["name"]: change["verdict"] for change in comparison["memory"]}["weights"] == "worse"
    followed = {(line["line_before"], line["line_after"], line["source"]) for line in comparison["lines"]}
    assert (12, 13, "x = self.first(x)") in followed
    after = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    assert {path: after.get(path) for path in before} == before


def saved(folder: Path, name: str, **iteration: object) -> str:
    """A report in JSON, with other figures for the iteration where given."""
    times = tuple(99.0 + at % 5 for at in range(20))
    profile = profile_of(STEP)
    changes = {"times_ms": times, "run_time_ms": 101.0, "iterations": 20, **iteration}
    profile = replace(profile, iteration=replace(profile.iteration, **changes))
    (folder / name).write_text(to_json_text(Report(profile=profile)))
    return str(folder / name)


def check_ends(
    capsys: pytest.CaptureFixture[str], code: int, message: str, *arguments: str, where: str = "err"
) -> None:
    assert main(["report", *arguments]) == code
    assert message in getattr(capsys.readouterr(), where)


def test_exit_codes_of_a_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0 where all is well or no limit was set, 3 where worse than the limit, 2 where it makes no sense."""
    before, after = saved(tmp_path, "a.json"), saved(tmp_path, "b.json", peak_bytes=2 * GIB)
    check_ends(capsys, 0, "no difference seen", "--compare", before, before, "--fail-above", "5%", where="out")
    check_ends(capsys, 0, "worse", "--compare", before, after, where="out")
    check_ends(capsys, 3, "peak memory is worse by more than 5 %", "--compare", before, after, "--fail-above", "5")
    check_ends(capsys, 0, "better", "--compare", after, before, "--fail-above", "5", where="out")
    check_ends(capsys, 2, "give its FILE", "--compare", before, "HEAD")
    check_ends(capsys, 2, "belong to --compare", before, "--fail-above", "5", "--json")
    check_ends(capsys, 2, "is not for --compare", "--compare", before, after, "--html", str(tmp_path / "x"))
    check_ends(capsys, 2, "No such file", "--compare", before, str(tmp_path / "absent.json"))


def test_a_revision_is_never_taken_for_an_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that git does not know is said to be none, before anything runs."""
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "entry.py").write_text(ENTRY)
    monkeypatch.chdir(tmp_path)
    for name in ("absent", "HEAD:entry.py", "entry.py"):
        check_ends(capsys, 2, "nor a revision", "entry.py", "--compare", name, ".")


@pytest.mark.parametrize("option", ["--sqlite", "--json", "--trace", "--html"])
def test_files_that_are_no_reports_are_spared(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    """Without --force nothing but a report of the same kind is replaced, and then all at once."""
    report = saved(tmp_path, "report.json")
    if option == "--trace":
        value = json.loads((tmp_path / "report.json").read_text())
        value["segments"] = [{"node": 0, "kind": "forward", "start_ms": 0.0, "duration_ms": 1.0}]
        (tmp_path / "report.json").write_text(json.dumps(value, indent=2))
    target = tmp_path / "out"
    target.write_text("print('mine')\n")
    check_ends(capsys, 2, "--force", report, option, str(target))
    assert target.read_text() == "print('mine')\n"
    check_ends(capsys, 0, "wrote", report, option, str(target), "--force")
    check_ends(capsys, 0, "wrote", report, option, str(target))
    assert b"mine" not in target.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "report.json"]


def test_usage_is_told_before_anything_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing to write, nowhere to write, one place for two reports, a trace that was not recorded."""
    report = saved(tmp_path, "report.json")
    out = str(tmp_path / "out")
    check_ends(capsys, 2, "say what to write", report)
    check_ends(capsys, 2, "FILE is missing", "--html", out)
    check_ends(capsys, 2, "no such folder", report, "--html", str(tmp_path / "absent" / "out"))
    check_ends(capsys, 2, "not a file", report, "--html", str(tmp_path))
    check_ends(capsys, 2, "named twice", report, "--html", out, "--trace", out)
    check_ends(capsys, 1, "no traced iteration", report, "--trace", out)
    (tmp_path / "other.json").write_text("{}")
    check_ends(capsys, 2, "not a report of skyline-lsp", str(tmp_path / "other.json"), "--html", out)


def test_a_saved_report_finds_its_source_where_it_is_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its hash, below the project's root and nowhere else."""
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "secret.py").write_text("secret\n")
    (folder / "train.py").write_text("same\n")
    (folder / "net.py").write_text("changed\n")
    digests = {"train.py": b"same\n", "net.py": b"before\n", "../secret.py": b"secret\n"}
    files = {path: hashlib.sha256(data).hexdigest() for path, data in digests.items()}
    profile = profile_of(STEP, files=files)
    (folder / "report.json").write_text(to_json_text(Report(profile=profile)))
    monkeypatch.chdir(folder)
    assert main(["report", "report.json", "--json", "full.json"]) == 0
    assert read_json((folder / "full.json").read_text()).sources == {"train.py": "same\n"}
