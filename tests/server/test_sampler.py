"""What a run at another batch size has shown."""

from pathlib import Path

import pytest

from skyline_lsp.protocol import Failure, FailureKind, Frame
from skyline_lsp.server.project_files import ProjectFiles
from skyline_lsp.server.sampler import Shown, shown
from skyline_lsp.source import Site, find_sites
from tests.prediction.curves import sample

SCRIPT = (
    "import torch\nloader = torch.utils.data.DataLoader(data, batch_size=16)\nfor batch in loader:\n    model(batch)\n"
)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return find_sites(ProjectFiles(str(tmp_path)), str(path))[0]


def judged(fed: int | None, failure: Failure | None = None, set_at: Site | None = None) -> Shown:
    taken = sample(fed, 10.0) if fed is not None else None
    return shown(32, taken, failure, set_at=set_at, place=lambda path, line: f"{Path(path).name}:{line}")


def test_a_sample_proves_the_site(site: Site) -> None:
    assert judged(32, set_at=site).site_works
    assert judged(32).site_works is None


def test_a_batch_that_stays_as_it_was_disproves_the_site(site: Site) -> None:
    seen = judged(16, set_at=site)
    assert seen.site_works is False
    assert seen.sample is None
    assert seen.remark is not None
    assert "train.py:2" in seen.remark


def test_memory_that_ran_out_is_no_fault_of_the_program() -> None:
    seen = judged(None, Failure(kind=FailureKind.OUT_OF_MEMORY, message="out of memory"))
    assert seen.out_of_memory
    assert seen.remark is None


def test_a_failure_is_told_with_its_line() -> None:
    frames = (
        Frame(path="/p/train.py", line=3, function="<module>"),
        Frame(path="/p/model.py", line=7, function="forward"),
    )
    seen = judged(None, Failure(kind=FailureKind.EXCEPTION, message="shape '[16, -1]' is invalid", frames=frames))
    assert seen.remark == "The program does not run at batch size 32 (model.py:7): shape '[16, -1]' is invalid"


def test_a_run_without_a_reason_is_told_of_too() -> None:
    assert judged(None).remark == "Batch size 32 could not be measured."
