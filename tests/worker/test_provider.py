"""Provider files: each of the three functions checked at its own line, then iterated."""

import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch")

from skyline_lsp.protocol import EntryKind, Failure, FailureKind, Goal, Profile, RunResult, RunSpec, Status
from tests.worker.worker_process import Run, Worker, failure_of, line_of, marked_line, spec

GOOD = {
    "imports": "import torch\nfrom torch import nn\n",
    "model": """
        def skyline_model_provider():
            return nn.Linear(8, 2)
        """,
    "input": """
        def skyline_input_provider(batch_size=16):
            return (torch.randn(batch_size, 8),)
        """,
    "iteration": """
        def skyline_iteration_provider(model):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            def iteration(x):
                optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step()
            return iteration
        """,
}


def providers(**parts: str) -> str:
    """A provider file, some of its parts replaced."""
    return "".join(textwrap.dedent(parts.get(name, text)) for name, text in GOOD.items())


def provider_spec(path: Path, **options: object) -> RunSpec:
    return spec(path, EntryKind.PROVIDER, **options)  # type: ignore[arg-type]


def run(process: Worker, folder: Path, source: str, **options: object) -> Run:
    process.initialize(folder)
    path = folder / "providers.py"
    path.write_text(source, encoding="utf-8")
    return process.run(provider_spec(path, **options))


def check_done(run: Run) -> RunResult:
    assert run.result.status is Status.DONE, run.result
    return run.result


def check_refused(process: Worker, folder: Path, source: str, kind: FailureKind, *words: str) -> Failure:
    """The file is refused, in these words, at the line marked HERE, else at the first line."""
    failure = failure_of(run(process, folder, source))
    assert failure.kind is kind, failure
    for word in words:
        assert word in failure.message
    line = marked_line(source) if "# HERE" in source else 1
    assert line_of(failure) == ("providers.py", line)
    return failure


def test_default_batch_size(warm_worker: Worker, tmp_path: Path) -> None:
    """The batch size is the input provider's default unless one is asked for."""
    sample = check_done(run(warm_worker, tmp_path, providers())).sample
    assert sample is not None
    assert sample.batch_size == 16


def test_other_batch_size(warm_worker: Worker, tmp_path: Path) -> None:
    """Another batch size is given to the input provider, and the model sees it."""
    result = check_done(run(warm_worker, tmp_path, providers(), batch_size=5, goal=Goal.PROVE))
    assert result.batch is not None
    assert result.batch.shapes == ((5, 8),)


def test_profile(warm_worker: Worker, tmp_path: Path) -> None:
    """A profile has the lines of the file, and partial results and stages came before it."""
    source = providers()
    whole = run(warm_worker, tmp_path, source, goal=Goal.PROFILE)
    profile = check_done(whole).profile
    assert isinstance(profile, Profile)
    assert profile.workload.path == "providers.py"
    assert marked_line(source, "backward()") in {line.line for line in profile.lines}
    assert [stage for stage in ("loading", "timing", "tracing", "memory") if stage in whole.stages] == [
        "loading",
        "timing",
        "tracing",
        "memory",
    ]
    assert any(message.get("method") == "partial" for message in whole.messages)


def test_estimate(warm_worker: Worker, tmp_path: Path) -> None:
    """An estimate runs without data; a line that needs data is told."""
    estimate = check_done(run(warm_worker, tmp_path, providers(), goal=Goal.ESTIMATE)).estimate
    assert estimate is not None
    assert estimate.peak_bytes > 0
    source = providers(
        iteration="""
        def skyline_iteration_provider(model):
            def iteration(x):
                print(model(x).sum().item())  # HERE
            return iteration
        """
    )
    failure = failure_of(run(warm_worker, tmp_path, source, goal=Goal.ESTIMATE))
    assert failure.kind is FailureKind.NEEDS_DATA
    assert line_of(failure) == ("providers.py", marked_line(source))


def test_deepview_names(warm_worker: Worker, tmp_path: Path) -> None:
    """DeepView's names do as well."""
    check_done(run(warm_worker, tmp_path, providers().replace("skyline_", "deepview_")))


def test_imported_providers(warm_worker: Worker, tmp_path: Path) -> None:
    """The functions may be imported into the file; what is wrong with one is told where it is defined."""
    (tmp_path / "model.py").write_text("from torch import nn\n" + textwrap.dedent(GOOD["model"]), encoding="utf-8")
    source = providers(model="from model import skyline_model_provider")
    check_done(run(warm_worker, tmp_path, source))
    broken = "# a model\ndef skyline_model_provider():\n    return 3\n"
    (tmp_path / "model.py").write_text(broken, encoding="utf-8")
    failure = failure_of(run(warm_worker, tmp_path, source))
    assert failure.kind is FailureKind.BAD_PROVIDER
    assert line_of(failure) == ("model.py", 2)


def test_place_of_the_file(warm_worker: Worker, tmp_path: Path) -> None:
    """The file sees what Python would show it: its folder first on the path, its name, the root as the folder it is in,
    and the root's packages at the end of the path."""
    folder = tmp_path / "profiling"
    folder.mkdir()
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("", encoding="utf-8")
    path = folder / "providers.py"
    path.write_text(
        "import os, sys, package\nprint([sys.path[0], __file__, __name__, os.getcwd(), sys.argv])\n"
        "assert sys.modules['providers'].__dict__ is globals()\n" + providers(),
        encoding="utf-8",
    )
    warm_worker.initialize(tmp_path)
    whole = warm_worker.run(provider_spec(path))
    check_done(whole)
    assert str([str(folder), str(path), "providers", str(tmp_path), [str(path)]]) in whole.output


def test_name_that_is_taken(warm_worker: Worker, tmp_path: Path) -> None:
    """A file named like a module that is loaded is loaded all the same."""
    warm_worker.initialize(tmp_path)
    path = tmp_path / "statistics.py"
    path.write_text(providers(), encoding="utf-8")
    check_done(warm_worker.run(provider_spec(path)))


def test_missing_provider(warm_worker: Worker, tmp_path: Path) -> None:
    """A missing function is named, with how to write it."""
    failure = check_refused(
        warm_worker,
        tmp_path,
        providers(input=""),
        FailureKind.MISSING_PROVIDER,
        "`skyline_input_provider` is missing",
        "def skyline_input_provider(batch_size=32)",
    )
    assert "model" not in failure.message
    check_refused(
        warm_worker, tmp_path, "x = 1\n", FailureKind.MISSING_PROVIDER, "skyline_model_provider", "iteration_provider"
    )


BAD: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "model with parameters": (
        "model",
        """
        def skyline_model_provider(size):  # HERE
            return nn.Linear(8, 2)
        """,
        ("takes no parameters",),
    ),
    "model that is none": (
        "model",
        """
        import functools
        @functools.lru_cache
        def skyline_model_provider():  # HERE
            nn.Linear(8, 2)
        """,
        ("returned None", "nn.Module"),
    ),
    "not a function": ("model", "skyline_model_provider = 3  # HERE\n", ("is an int", "not a function")),
    "inputs without parameter": (
        "input",
        """
        def skyline_input_provider():  # HERE
            return (torch.randn(4, 8),)
        """,
        ("exactly one parameter", "`batch_size`"),
    ),
    "inputs with two parameters": (
        "input",
        """
        def skyline_input_provider(batch_size=4, size=8):  # HERE
            return (torch.randn(batch_size, size),)
        """,
        ("exactly one parameter",),
    ),
    "batch size without default": (
        "input",
        """
        def skyline_input_provider(batch_size):  # HERE
            return (torch.randn(batch_size, 8),)
        """,
        ("`batch_size` has no default in `skyline_input_provider`", "batch_size=32"),
    ),
    "default that is no int": (
        "input",
        """
        def skyline_input_provider(batch_size=32.0):  # HERE
            return (torch.randn(batch_size, 8),)
        """,
        ("32.0", "int"),
    ),
    "bare tensor": (
        "input",
        """
        def skyline_input_provider(batch_size=4):  # HERE
            return torch.randn(batch_size, 8)
        """,
        ("bare tensor", "(inputs,)"),
    ),
    "dictionary": (
        "input",
        """
        def skyline_input_provider(batch_size=4):  # HERE
            return {"x": torch.randn(batch_size, 8)}
        """,
        ("a dict", "tuple"),
    ),
    "no inputs": (
        "input",
        """
        def skyline_input_provider(batch_size=4):  # HERE
            torch.randn(batch_size, 8)
        """,
        ("returned None",),
    ),
    "iteration provider without model": (
        "iteration",
        """
        def skyline_iteration_provider():  # HERE
            return lambda x: None
        """,
        ("one parameter, the model",),
    ),
    "iteration that is none": (
        "iteration",
        """
        def skyline_iteration_provider(model):  # HERE
            def iteration(x):
                model(x)
        """,
        ("returned None", "`return iteration`"),
    ),
    "iteration of other inputs": (
        "iteration",
        """
        def skyline_iteration_provider(model):
            def iteration(x, y):  # HERE
                model(x)
            return iteration
        """,
        ("1 input", "missing a required argument: 'y'"),
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_provider(warm_worker: Worker, tmp_path: Path, name: str) -> None:
    """What is wrong with a function is said at its `def`, with what to write."""
    part, source, words = BAD[name]
    check_refused(warm_worker, tmp_path, providers(**{part: source}), FailureKind.BAD_PROVIDER, *words)


def test_provider_that_raises(warm_worker: Worker, tmp_path: Path) -> None:
    """An exception inside a provider is told at the line that raised."""
    source = providers(
        model="""
        def skyline_model_provider():
            raise RuntimeError("no weights")  # HERE
        """
    )
    check_refused(warm_worker, tmp_path, source, FailureKind.EXCEPTION, "no weights")


def test_syntax_error(warm_worker: Worker, tmp_path: Path) -> None:
    """A syntax error is told at its line, in the file or in one that it imports."""
    check_refused(warm_worker, tmp_path, "x = (\n", FailureKind.SYNTAX_ERROR, "never closed")
    (tmp_path / "broken.py").write_text("ok = 1\nx = = 2\n", encoding="utf-8")
    failure = failure_of(run(warm_worker, tmp_path, "import broken\n" + providers()))
    assert failure.kind is FailureKind.SYNTAX_ERROR
    assert line_of(failure) == ("broken.py", 2)
    assert [frame.line for frame in failure.frames] == [1, 2]


def test_file_that_is_gone(warm_worker: Worker, tmp_path: Path) -> None:
    """A file that can't be read is a failure, not a fault."""
    warm_worker.initialize(tmp_path)
    failure = failure_of(warm_worker.run(provider_spec(tmp_path / "gone.py")))
    assert "No such file" in failure.message


def test_changes_are_seen(warm_worker: Worker, tmp_path: Path) -> None:
    """Each run sees the project's files as they are on disk, imported ones too."""
    helper = tmp_path / "sizes.py"
    source = providers(input="from sizes import skyline_input_provider").replace("import torch\n", "import torch\n", 1)
    for size in (3, 4):
        helper.write_text(
            f"import torch\ndef skyline_input_provider(batch_size={size}):\n    return (torch.ones(batch_size, 8),)\n",
            encoding="utf-8",
        )
        sample = check_done(run(warm_worker, tmp_path, source)).sample
        assert sample is not None
        assert sample.batch_size == size


@pytest.mark.parametrize("device", ["cuda", "no-such-device"])
def test_device_that_is_not_there(warm_worker: Worker, tmp_path: Path, device: str) -> None:
    """A device that torch does not see is a matter of the environment."""
    import torch

    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("it is there")
    warm_worker.initialize(tmp_path)
    path = tmp_path / "providers.py"
    path.write_text(providers(), encoding="utf-8")
    from dataclasses import replace

    failure = failure_of(warm_worker.run(replace(provider_spec(path), device=device)))
    assert failure.kind is FailureKind.ENVIRONMENT
    assert device in failure.message
