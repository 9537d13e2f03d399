"""What the command line accepts, how it ends, and what it loads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skyline_lsp import __version__
from skyline_lsp.cli import main

PROVIDERS = """\
def skyline_model_provider():
    return None


def skyline_input_provider(batch_size=32):  # images
    return ()


def skyline_iteration_provider(model):
    return lambda: None
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one provider file, which is also the current folder."""
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "entry.py").write_text(PROVIDERS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check_usage_error(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command ends with code 2, says why on standard error, and prints nothing else."""
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = ended.code
    captured = capsys.readouterr()
    assert code == 2
    assert captured.out == ""
    assert message in captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prophesy"], "invalid choice"),
        (["profile"], "FILE"),
        (["profile", "absent.py"], "absent.py: there is no such file"),
        (["profile", "."], "there is no such file"),
        (["profile", "entry.py", "--batch-size", "0"], "a batch size is a whole number from 1 up, not '0'"),
        (["profile", "entry.py", "--batch-size", "many"], "not 'many'"),
        (["profile", "entry.py", "--root", "absent"], "--root: absent is not a folder"),
        (["profile", "entry.py", "--root", "other"], "is not below the root"),
        (["profile", "entry.py", "--python", "./absent"], "absent: there is no such file"),
        (["predict", "entry.py"], "--batch-size"),
        (["predict", "entry.py", "--batch-size", "8,,16"], "not ''"),
        (["retune", "entry.py"], "--batch-size"),
        (["doctor", "absent.py"], "absent.py: there is no such file"),
        (["--tcp", "localhost"], "HOST:PORT is expected"),
        (["--tcp", "127.0.0.1:99999"], "HOST:PORT is expected"),
    ],
)
def test_usage_errors(project: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What makes no sense ends with code 2 and a message that says what would."""
    (project / "other").mkdir()
    check_usage_error(arguments, message, capsys)


def test_version_loads_neither_the_server_nor_its_libraries() -> None:
    """Asking for the version is quick: it imports no pygls, numpy, rich or asyncio."""
    script = (
        "import sys\n"
        "from skyline_lsp.cli import main\n"
        "try: main(['--version'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('pygls', 'lsprotocol', 'numpy', 'rich', 'asyncio') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"skyline-lsp {__version__}\n[]\n"


def test_both_ways_to_start_are_one() -> None:
    """`python -m skyline_lsp` takes the same arguments as `skyline-lsp`."""
    done = subprocess.run([sys.executable, "-m", "skyline_lsp", "retune"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: skyline-lsp retune ")


def test_retune_prints_a_patch_and_leaves_the_file_alone(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --write the difference is printed, in a form that git can apply, and nothing is changed."""
    assert main(["retune", "entry.py", "--batch-size", "48"]) == 0
    patch = capsys.readouterr().out
    assert "-def skyline_input_provider(batch_size=32):  # images\n" in patch
    assert "+def skyline_input_provider(batch_size=48):  # images\n" in patch
    assert (project / "entry.py").read_text() == PROVIDERS
    subprocess.run(["git", "apply", "-"], input=patch, text=True, check=True, cwd=project)
    assert (project / "entry.py").read_text() == PROVIDERS.replace("=32", "=48")


def test_retune_writes_the_digits_and_nothing_else(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --write the digits are replaced; line ends, encoding and the file's mode stay."""
    source = "# -*- coding: latin-1 -*-\n# caf\u00e9\n" + PROVIDERS
    data = source.replace("\n", "\r\n").encode("latin-1")
    (project / "entry.py").write_bytes(data)
    (project / "entry.py").chmod(0o640)
    assert main(["retune", "entry.py", "--batch-size", "48", "--write"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "entry.py:7: batch_size: 32 -> 48\n"
    assert (project / "entry.py").read_bytes() == data.replace(b"=32", b"=48")
    assert (project / "entry.py").stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in project.iterdir()) == ["entry.py", "pyproject.toml"]


def test_retune_through_a_link_changes_the_file_behind_it(project: Path) -> None:
    """A linked file stays a link."""
    (project / "link.py").symlink_to("entry.py")
    assert main(["retune", "link.py", "--batch-size", "48", "--write"]) == 0
    assert (project / "link.py").is_symlink()
    assert "=48" in (project / "entry.py").read_text()


def test_retune_to_the_same_size_says_so(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is nothing to change, and that is fine."""
    assert main(["retune", "entry.py", "--batch-size", "32", "--write"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "is 32 already" in captured.err


def test_retune_without_a_place_says_why(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no integer sets the batch size, the command fails with the reason."""
    (project / "entry.py").write_text("print('hello')\n")
    assert main(["retune", "entry.py", "--batch-size", "48"]) == 1
    assert "entry.py: the batch size can't be changed: " in capsys.readouterr().err


def test_a_reader_that_leaves_early_is_no_error(project: Path) -> None:
    """Piping into a program that stops reading ends quietly."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "skyline_lsp", "retune", "entry.py", "--batch-size", "48"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
