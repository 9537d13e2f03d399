"""Results outlive the session, and damage to them harms nobody."""

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from skyline_lsp.protocol import Device, Iteration, Memory, Profile, Sample, Workload
from skyline_lsp.server.cache import ResultCache, content_digest

PROFILE = Profile(
    device=Device(kind="cpu", name="cpu", memory_bytes=1),
    workload=Workload(kind="provider", path="a.py"),
    batch_size=8,
    iteration=Iteration(run_time_ms=2.0, spread_ms=0.1, iterations=5, samples_per_second=4000.0, peak_bytes=5),
    untracked_ms=2.0,
    memory=Memory(weights_bytes=1, gradients_bytes=1, optimizer_bytes=1, activations_bytes=1, other_bytes=1),
    lines=(),
    tree=(),
    torch_version="2",
    python_version="3",
    files={"a.py": "00"},
)
SAMPLES = tuple(
    Sample(batch_size=size, run_time_ms=1.0, spread_ms=0.0, iterations=5, peak_bytes=1) for size in (1, 2, 4)
)


@pytest.fixture
def cache(tmp_path: Path) -> ResultCache:
    return ResultCache("/project", folder=tmp_path)


def damage(folder: Path, data: bytes) -> None:
    damaged = list(folder.rglob("*.json.gz"))
    assert damaged
    for path in damaged:
        path.write_bytes(data)


def test_a_profile_is_found_again_by_its_files(cache: ResultCache, tmp_path: Path) -> None:
    """In another session, and only where every file is what it was."""
    cache.save_profile("w", PROFILE, PROFILE.files, saved_at="2026-01-01T00:00:00Z")
    again = ResultCache("/project", folder=tmp_path)
    record = again.find_profile("w", lambda files: files == {"a.py": "00"})
    assert record is not None
    assert record.profile == PROFILE
    assert again.find_profile("w", lambda files: False) is None
    assert again.find_profile("other workload", lambda files: True) is None
    assert ResultCache("/other", folder=tmp_path).find_profile("w", lambda files: True) is None


def test_an_older_state_of_the_files_is_found_too(cache: ResultCache) -> None:
    """As after switching back to another branch; of two that fit, the newer counts."""
    for hour, content in enumerate(("a", "b", "a")):
        profile = replace(PROFILE, batch_size=hour, files={"a.py": content})
        cache.save_profile("w", profile, profile.files, saved_at=f"2026-01-01T0{hour}:00:00Z")
    found = [cache.find_profile("w", lambda files, c=content: files["a.py"] == c) for content in "ab"]
    assert [record and record.profile.batch_size for record in found] == [2, 1]


def test_what_is_kept_is_bounded(cache: ResultCache, tmp_path: Path) -> None:
    """The newest stay."""
    for number in range(230):
        profile = replace(PROFILE, batch_size=number)
        cache.save_profile("w", profile, profile.files, saved_at=f"2026-01-01T00:00:{number:06}Z")
    assert len(list((tmp_path / "projects").rglob("profiles/*/*.gz"))) == 8
    rows = cache.history("w")
    assert len(rows) == 200
    assert rows[-1].batch_size == 229
    assert (rows[-1].run_time_ms, rows[-1].content) == (2.0, content_digest(PROFILE.files))


@pytest.mark.parametrize("data", [b"", b"\x1f\x8b junk", gzip.compress(b"{}"), gzip.compress(b"[1]"), b"{" * 10000])
def test_damaged_files_are_passed_over_and_replaced(cache: ResultCache, tmp_path: Path, data: bytes) -> None:
    """Whatever stands in them."""
    cache.save_profile("w", PROFILE, PROFILE.files, saved_at="2026-01-01T00:00:00Z")
    cache.save_samples("k", SAMPLES)
    damage(tmp_path, data)
    assert cache.find_profile("w", lambda files: True) is None
    assert (cache.history("w"), cache.samples("k")) == ((), ())
    cache.save_profile("w", PROFILE, PROFILE.files, saved_at="2026-01-01T00:00:00Z")
    cache.save_samples("k", SAMPLES)
    assert cache.find_profile("w", lambda files: True) is not None
    assert (len(cache.history("w")), cache.samples("k")) == (1, SAMPLES)


def test_a_folder_that_can_not_be_written_is_no_fault(tmp_path: Path) -> None:
    """The result is shown all the same."""
    (tmp_path / "file").touch()
    cache = ResultCache("/project", folder=tmp_path / "file")
    cache.save_profile("w", PROFILE, PROFILE.files, saved_at="2026-01-01T00:00:00Z")
    assert cache.history("w") == ()


def test_no_half_written_files_are_left(cache: ResultCache, tmp_path: Path) -> None:
    """They are written aside and renamed."""
    cache.save_samples("k", SAMPLES)
    assert all(path.name.endswith(".json.gz") for path in tmp_path.rglob("*") if path.is_file())


def test_samples_outlive_a_retuning() -> None:
    """The digest leaves the batch size's digits out, and nothing else."""
    files = {"a.py": "11", "b.py": "22"}
    retuned = {"a.py": "33", "b.py": "22"}
    assert content_digest(files) != content_digest(retuned)
    assert content_digest(files, {"a.py": b"batch_size="}) == content_digest(retuned, {"a.py": b"batch_size="})
    assert content_digest(files, {"a.py": b"x"}) != content_digest(files, {"a.py": b"y"})
