"""The tables of a report: what a query adds up is what the profile says."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from skyline_lsp.protocol import MemoryEvent, ParameterCost, Phase, PhaseKind, Profile
from skyline_lsp.reports import Report, recognise_tables, write_tables
from tests.features.building import STEP, profile_of

PROFILE = profile_of(
    STEP + "  train.py:12 iteration 0.5 0 x3 module=head:_Linear\n",
    parameters=(
        ParameterCost(name="a.weight", weight_bytes=400, gradient_bytes=400),
        ParameterCost(name="b.weight", weight_bytes=100, gradient_bytes=0),
    ),
    phases=(Phase(kind=PhaseKind.FORWARD, run_time_ms=40), Phase(kind=PhaseKind.BACKWARD, run_time_ms=60)),
    timeline=(MemoryEvent(time_ms=1, live_bytes=10), MemoryEvent(time_ms=2, live_bytes=20)),
)


@pytest.fixture
def database() -> sqlite3.Connection:
    """The tables of `PROFILE`."""
    connection = sqlite3.connect(":memory:")
    write_tables(connection, Report(profile=PROFILE, sources={"net.py": "\n" * 5 + "  x = conv(x)\n"}), "1.0")
    return connection


def check_query(database: sqlite3.Connection, query: str, *expected: object) -> None:
    (row,) = database.execute(query).fetchall()
    assert row == pytest.approx(expected)


def test_run_times_sum_to_the_iteration(database: sqlite3.Connection) -> None:
    """Forward, backward and untracked time are the iteration's, as in the profile."""
    check_query(
        database,
        "SELECT sum(forward_ms) + sum(backward_ms) + (SELECT untracked_ms FROM iteration) FROM run_time_entries",
        PROFILE.iteration.run_time_ms,
    )


def test_an_entry_without_backward_time_has_none(database: sqlite3.Connection) -> None:
    """NULL, so that averages leave it out."""
    check_query(database, "SELECT count(*) - count(backward_ms) FROM run_time_entries", 1)


def test_stack_frames_lead_from_the_line_to_the_top(database: sqlite3.Connection) -> None:
    """Position 0 is the entry's own line; time below a frame is the line's inclusive time."""
    frames = database.execute(
        "SELECT f.path, f.line, f.function FROM stack_frames f JOIN run_time_entries e ON e.id = f.entry_id"
        " WHERE e.path = 'conv.py' AND e.line = 20 ORDER BY f.position"
    ).fetchall()
    assert frames == [("conv.py", 20, "Conv.forward"), ("net.py", 6, "Net.forward"), ("train.py", 11, "iteration")]
    (cost,) = [cost for cost in PROFILE.lines if (cost.path, cost.line) == ("net.py", 6)]
    check_query(
        database,
        "SELECT sum(forward_ms), sum(backward_ms) FROM run_time_entries WHERE id IN"
        " (SELECT entry_id FROM stack_frames WHERE path = 'net.py' AND line = 6)",
        cost.forward_ms,
        cost.backward_ms,
    )


def test_memory_tables_hold_the_profiles_bytes(database: sqlite3.Connection) -> None:
    """Classes sum to the peak, activations to those of the lines, weights to the parameters'."""
    check_query(database, "SELECT sum(bytes) FROM peak_memory", PROFILE.iteration.peak_bytes)
    check_query(
        database,
        "SELECT sum(activation_bytes), sum(peak_bytes) FROM activation_entries",
        sum(cost.self_activation_bytes for cost in PROFILE.lines),
        sum(node.peak_bytes for node in PROFILE.tree),
    )
    check_query(database, "SELECT sum(weight_bytes), sum(gradient_bytes) FROM weight_entries", 500, 400)
    check_query(database, "SELECT max(live_bytes) FROM memory_timeline", 20)


def test_operations_are_named_by_what_is_known(database: sqlite3.Connection) -> None:
    """A module of library code, else the text of the line, else its place."""
    rows = set(database.execute("SELECT path, line, operation FROM run_time_entries"))
    assert rows >= {
        ("train.py", 12, "head: Linear"),
        ("net.py", 6, "x = conv(x)"),
        ("conv.py", 20, "conv.py:20"),
    }


def test_meta_says_what_was_measured(database: sqlite3.Connection) -> None:
    """By key: versions, device, batch size."""
    meta = dict(database.execute("SELECT key, value FROM meta"))
    assert (
        meta.items() >= {"schema_version": 1, "batch_size": 16, "device_kind": "cpu", "torch_version": "2.13.0"}.items()
    )
    check_query(database, "PRAGMA user_version", meta["schema_version"])


def test_an_iteration_without_lines_has_its_tables() -> None:
    """An empty profile is no error."""
    profile: Profile = profile_of("")
    with closing(sqlite3.connect(":memory:")) as connection:
        write_tables(connection, Report(profile=profile), "1.0")
        check_query(connection, "SELECT count(*) FROM run_time_entries", 0)


def test_databases_of_ours_are_known_by_their_header(tmp_path: Path) -> None:
    """And those of other programs are not taken for ours."""
    for name, ours in (("ours.db", True), ("other.db", False)):
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            if ours:
                write_tables(connection, Report(profile=PROFILE), "1.0")
            else:
                connection.execute("CREATE TABLE t (a)")
        assert recognise_tables((tmp_path / name).read_bytes()[:100]) is ours
    assert not recognise_tables(b"")
