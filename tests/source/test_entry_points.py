"""What is found to be profilable, and which of several is meant."""

import pytest

from skyline_lsp.source import EntryPointKind, find_entry_point, find_entry_points, nearest_entry_point
from tests.source.projects import ROOT, MemoryFiles

_PROVIDERS = """\
def skyline_model_provider():
    return 1


def skyline_input_provider(
    batch_size=32,
):
    return ()


def skyline_iteration_provider(model):
    return 1
"""


def check_script(text: str, line: int | None) -> None:
    """Whether a file is a training script, and where it trains."""
    entry = find_entry_point(f"{ROOT}/train.py", text.encode())
    if line is None:
        assert entry is None
    else:
        assert entry is not None
        assert (entry.kind, entry.line) == (EntryPointKind.SCRIPT, line)


def test_provider_files_have_their_functions_located() -> None:
    """Each provider's line, and the line of the batch size."""
    entry = find_entry_point("/p/a.py", _PROVIDERS.encode())
    assert entry is not None
    assert entry.kind is EntryPointKind.PROVIDER
    providers = entry.providers
    assert providers is not None
    assert providers.prefix == "skyline"
    assert providers.model is not None
    assert providers.input is not None
    assert providers.iteration is not None
    assert [providers.model.line, providers.input.line, providers.iteration.line] == [1, 5, 11]
    assert entry.batch_size_line == 6


def test_deepviews_names_count_too() -> None:
    """DeepView's prefix makes a provider file."""
    entry = find_entry_point("/p/a.py", _PROVIDERS.replace("skyline", "deepview").encode())
    assert entry is not None
    assert entry.providers is not None
    assert entry.providers.prefix == "deepview"


def test_the_last_definition_is_the_one_that_runs() -> None:
    """Where a provider is defined twice, the second counts."""
    entry = find_entry_point("/p/a.py", (_PROVIDERS + "\n\n" + _PROVIDERS).encode())
    assert entry is not None
    assert entry.providers is not None
    assert entry.providers.model is not None
    assert entry.providers.model.line == 15


def test_imported_and_assigned_providers_count() -> None:
    """Functions may come from another file."""
    text = "from lib import skyline_model_provider, make as skyline_input_provider\nskyline_iteration_provider = f\n"
    entry = find_entry_point("/p/a.py", text.encode())
    assert entry is not None
    assert entry.providers is not None
    assert entry.providers.input is not None
    assert entry.providers.input.imported
    assert entry.providers.iteration is not None
    assert entry.batch_size_line is None


def test_a_missing_provider_is_told() -> None:
    """Two of three are still a provider file, and the reason names the third."""
    text = _PROVIDERS[: _PROVIDERS.index("def skyline_iteration")]
    entry = find_entry_point("/p/a.py", text.encode())
    assert entry is not None
    assert entry.providers is not None
    assert entry.providers.iteration is None
    assert "skyline_iteration_provider missing" in entry.reason


def test_names_in_comments_or_methods_are_no_providers() -> None:
    """Only definitions at the top of the file make a provider file."""
    assert find_entry_point("/p/a.py", b"# skyline_model_provider\n") is None
    assert find_entry_point("/p/a.py", b"class A:\n    def skyline_model_provider(self): pass\n") is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import torch\nfor x in data:\n    loss(x).backward()\n", 3),
        ("import torch\ndef main():\n    loss.backward()\nif __name__ == '__main__':\n    main()\n", 3),
        ("from engine import train_one_epoch\nimport torch\nif '__main__' == __name__:\n    train_one_epoch()\n", 4),
        ("import lightning as L\ntrainer = L.Trainer()\ntrainer.fit(model)\n", 3),
        ("from transformers import Trainer\nt = Trainer()\nt.train(resume=True)\n", 3),
        ("from transformers import Trainer\ntrainer = Trainer()\ntrainer.train()\n", 3),
        ("import torch\ndef step(loss):\n    loss.backward()\n", None),
        ("import torch\nclass T:\n    def fit(self):\n        self.loss.backward()\nx = T()\n", None),
        ("import torch\nmodel.train()\nmodel.eval()\n", None),
        ("print('train')\nif __name__ == '__main__':\n    print(1)\n", None),
        ("import torch\nif __name__ == '__main__':\n    print(torch.ones(1))\n", 2),
        ("import torch\ndef broken(:\n", None),
    ],
)
def test_training_scripts_are_told_from_libraries(text: str, line: int | None) -> None:
    """A script starts something and trains; a library only defines."""
    check_script(text, line)


def test_a_library_with_the_same_code_is_no_script() -> None:
    """A main block without training, in a file whose name says nothing, is none."""
    text = "import torch\nif __name__ == '__main__':\n    print(torch.ones(1))\n"
    assert find_entry_point(f"{ROOT}/utils.py", text.encode()) is None


def test_entry_points_of_a_project_come_providers_first() -> None:
    """Provider files before scripts, each by path."""
    script = b"import torch\nloss.backward()\n"
    files = MemoryFiles(
        files={f"{ROOT}/a/train.py": script, f"{ROOT}/z.py": _PROVIDERS.encode(), f"{ROOT}/b.py": b"x = 1\n"}
    )
    assert [entry.path for entry in find_entry_points(files)] == [f"{ROOT}/z.py", f"{ROOT}/a/train.py"]


@pytest.mark.parametrize(
    ("open_file", "expected"),
    [
        ("a/train.py", "a/train.py"),
        ("a/models/net.py", "a/train.py"),
        ("b/providers.py", "b/providers.py"),
        ("b/models/x.py", "b/providers.py"),
        ("README.md", "entry.py"),
    ],
)
def test_the_nearest_entry_point_is_active(open_file: str, expected: str) -> None:
    """The file itself, else one in its folder or above it."""
    files = MemoryFiles(
        files={
            f"{ROOT}/a/train.py": b"import torch\nloss.backward()\n",
            f"{ROOT}/b/providers.py": _PROVIDERS.encode(),
            f"{ROOT}/entry.py": _PROVIDERS.encode(),
        }
    )
    found = nearest_entry_point(find_entry_points(files), f"{ROOT}/{open_file}")
    assert found is not None
    assert found.path == f"{ROOT}/{expected}"


def test_no_entry_point_is_none() -> None:
    """An empty project has no nearest one."""
    assert nearest_entry_point((), "/p/a.py") is None
