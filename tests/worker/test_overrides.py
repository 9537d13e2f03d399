"""A literal replaced in memory: the program runs as the edit would leave it, and the disk stays as it is."""

import json
import py_compile
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from skyline_lsp.protocol import EntryKind, FailureKind, Goal, Override, Status
from skyline_lsp.worker.failures import Refused
from skyline_lsp.worker.overrides import Overrides
from tests.worker.worker_process import Run, Worker, failure_of, line_of, spec

TRAIN = """\
import torch
{how}
w = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(w.parameters(), lr=0.1)
for _ in range(100):
    w(torch.ones(batch_size, 4)).sum().backward()
    optimizer.step()
"""


def override(path: Path, old: str, new: str) -> Override:
    """Replace the only place of `old` in a file."""
    data = path.read_bytes()
    assert data.count(old.encode()) == 1
    start = data.index(old.encode())
    return Override(path=str(path), start=start, end=start + len(old), old=old, new=new)


def run(process: Worker, folder: Path, how: str, *overrides: Override, **options: object) -> Run:
    path = folder / "train.py"
    path.write_text(TRAIN.format(how=how), encoding="utf-8")
    process.initialize(folder)
    return process.run(spec(path, goal=Goal.PROVE, overrides=overrides, **options))  # type: ignore[arg-type]


def check_batch(run: Run, size: int) -> None:
    """The model was fed batches of this size."""
    assert run.result.status is Status.DONE, run.result
    assert run.result.batch is not None
    assert run.result.batch.shapes == ((size, 4),)


def check_replaced(process: Worker, file: Path, how: str, old: str = "64") -> None:
    """Replacing the number in `file` changes the batch and nothing on disk; without that, there is the old batch."""
    before = file.read_bytes()
    check_batch(run(process, file.parent, how), 64)
    check_batch(run(process, file.parent, how, override(file, old, "7")), 7)
    assert file.read_bytes() == before
    check_batch(run(process, file.parent, how), 64)


def test_entry_file(warm_worker: Worker, tmp_path: Path) -> None:
    """In the file that is started."""
    path = tmp_path / "train.py"
    path.write_text(TRAIN.format(how="batch_size = 64"), encoding="utf-8")
    check_batch(run(warm_worker, tmp_path, "batch_size = 64", override(path, "64", "128")), 128)


def test_module(warm_worker: Worker, tmp_path: Path) -> None:
    """In a module that is imported, whether or not its compiled form is cached, which stays as it is."""
    file = tmp_path / "settings.py"
    file.write_text("batch_size = 64\n", encoding="utf-8")
    check_replaced(warm_worker, file, "from settings import batch_size")
    cached = Path(py_compile.compile(str(file), doraise=True))
    compiled = cached.read_bytes()
    check_replaced(warm_worker, file, "from settings import batch_size")
    assert cached.read_bytes() == compiled


def test_package_run_as_module(warm_worker: Worker, tmp_path: Path) -> None:
    """In a package's module that is run by name."""
    package = tmp_path / "package"
    package.mkdir()
    path = package / "__main__.py"
    path.write_text(TRAIN.format(how="batch_size = 64"), encoding="utf-8")
    warm_worker.initialize(tmp_path)
    asked = spec(path, EntryKind.MODULE, module="package", goal=Goal.PROVE, overrides=(override(path, "64", "5"),))
    check_batch(warm_worker.run(asked), 5)


@pytest.mark.parametrize(
    ("name", "text", "how"),
    [
        ("config.json", '{"batch_size": 64}', "import json; batch_size = json.load(open('config.json'))['batch_size']"),
        (
            "config.toml",
            "batch_size = 64\r\n",
            "import pathlib; batch_size = int(pathlib.Path('config.toml').read_text().split('=')[1])",
        ),
        ("config.yaml", "batch_size: 64", "import io; batch_size = int(io.open('./config.yaml', 'rb').read()[-2:])"),
        (
            "size.txt",
            "64",
            "import os; f = open(b'size.txt'); assert os.fstat(f.fileno()); assert f.name == b'size.txt'; "
            "batch_size = int(next(f))",
        ),
        ("configurator.py", "batch_size = 64\n", "exec(open('configurator.py').read())"),
        ("sizes.py", "batch_size = 64\n", "import runpy; batch_size = runpy.run_path('sizes.py')['batch_size']"),
    ],
)
def test_data_file(warm_worker: Worker, tmp_path: Path, name: str, text: str, how: str) -> None:
    """In any other file, however the program opens it for reading."""
    file = tmp_path / name
    file.write_bytes(text.encode())
    check_replaced(warm_worker, file, how)


def test_writing_reaches_the_disk(warm_worker: Worker, tmp_path: Path) -> None:
    """A file that the program writes is written."""
    file = tmp_path / "config.json"
    file.write_text('{"batch_size": 64}', encoding="utf-8")
    how = "import json; batch_size = 64; json.dump({'batch_size': 64, 'runs': 1}, open('config.json', 'w'))"
    check_batch(run(warm_worker, tmp_path, how, override(file, "64", "7")), 64)
    assert json.loads(file.read_text(encoding="utf-8"))["runs"] == 1


def test_several_in_one_file(warm_worker: Worker, tmp_path: Path) -> None:
    """Several replacements in one file do not disturb one another's places."""
    file = tmp_path / "settings.py"
    file.write_text("batch_size = 6 * 11  # samples\n", encoding="utf-8")
    result = run(
        warm_worker,
        tmp_path,
        "from settings import batch_size",
        override(file, "6", "100"),
        override(file, "11", "2"),
    )
    check_batch(result, 200)


def test_lines_stay(warm_worker: Worker, tmp_path: Path) -> None:
    """Failures and tracebacks show the lines as they ran."""
    file = tmp_path / "settings.py"
    file.write_text("first = 1\nbatch_size = 64 // 1\n", encoding="utf-8")
    whole = run(warm_worker, tmp_path, "from settings import batch_size", override(file, "// 1", "// 0"))
    failure = failure_of(whole)
    assert line_of(failure) == ("settings.py", 2)
    assert "batch_size = 64 // 0" in failure.traceback


def test_source_is_what_runs(warm_worker: Worker, tmp_path: Path) -> None:
    """Whoever looks at the program's source, such as TorchScript, gets the replaced one."""
    file = tmp_path / "settings.py"
    file.write_text("def size():\n    return 64\n", encoding="utf-8")
    how = "import inspect, settings; batch_size = int(inspect.getsource(settings.size)[-3:])"
    check_batch(run(warm_worker, tmp_path, how, override(file, "64", "12")), 12)


def test_changed_file(warm_worker: Worker, tmp_path: Path) -> None:
    """Where another text stands, the run is refused at its line and nothing is run."""
    file = tmp_path / "settings.py"
    file.write_text("# size\nbatch_size = 64\n", encoding="utf-8")
    asked = override(file, "64", "7")
    file.write_text("# size\nbatch_size = 32\n", encoding="utf-8")
    whole = run(warm_worker, tmp_path, "print('ran')\nfrom settings import batch_size", asked)
    failure = failure_of(whole)
    assert failure.kind is FailureKind.CHANGED
    assert "'32'" in failure.message
    assert line_of(failure) == ("settings.py", 2)
    assert "ran" not in whole.output
    file.unlink()
    assert failure_of(run(warm_worker, tmp_path, "", asked)).kind is FailureKind.CHANGED


def test_encodings(tmp_path: Path) -> None:
    """Places are bytes: a mark at the start and other encodings make no difference."""
    for data in (b"\xef\xbb\xbfx = '\xc3\xa9'; n = 64\n", b"# coding: latin-1\r\nx = '\xe9'; n = 64\r\n"):
        file = tmp_path / "file.py"
        file.write_bytes(data)
        one = override(file, "64", "1_024")
        assert Overrides([one]).apply(str(file), data) == data.replace(b"64", b"1_024")
        with pytest.raises(Refused):
            Overrides([replace(one, start=one.start + 1, end=one.end + 1)]).check()
