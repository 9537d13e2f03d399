"""The iteration as a whole."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from skyline_lsp.features import Cell, Index, Preview, breakdown, headline_parts, paragraph
from skyline_lsp.features.summary import memory_table
from skyline_lsp.protocol import Memory
from tests.features.building import GIB, MIB, PEAKS, STEP, prediction_of, profile_of


def test_headline() -> None:
    """Time with its spread, throughput, and peak of capacity, each a part of its own."""
    assert headline_parts(profile_of(STEP)) == (
        "100 ms/iteration (+-2)",
        "160 samples/s",
        "peak 1 GiB of 8 GiB (12 %)",
    )


def test_paragraph_of_accumulated_gradients() -> None:
    """Where an iteration is several micro-batches, that is said beside the batch size."""
    text = paragraph(replace(profile_of(STEP), micro_batches=4))
    assert text.startswith("An iteration of batch size 16 x 4 micro-batches takes 100 ms (+-2, median of 20)")


def test_paragraph_of_a_preview() -> None:
    """A predicted iteration is called so, with its interval, and is not said to have been timed."""
    preview = Preview(batch_size=32, prediction=prediction_of(32, run_time_ms=180, peak_bytes=2 * GIB))
    assert paragraph(profile_of(STEP), preview) == (
        "Predicted: an iteration of batch size 32 takes 180 ms (162 to 198 ms, 90 % interval) on Test CPU. "
        "That is 178 samples/s. Memory peaks at 2 GiB of 8 GiB (25 %)."
    )


def test_what_bounds_the_step_and_its_lines() -> None:
    """With the device's peaks known, utilisation and bound are told, and the table of lines has their bounds."""
    profile = profile_of(
        """
        net.py:1 f 30 30 flop=40000000000
        net.py:2 f 10 10 moved=100MiB
        net.py:3 f 5 0 operations=800
        """,
        peaks=PEAKS,
    )
    text = paragraph(profile)
    assert "It computes 40 GFLOP at 400 GFLOP/s, 40 % of the device's measured best. It is device-bound." in text
    table = breakdown(Index(profile)).lines
    assert [(row[0], row[-1]) for row in table.rows if row[-1]] == [
        (Cell(plain=f"net.py:{line}", markdown=f"`net.py:{line}`"), bound)
        for line, bound in ((1, "compute"), (2, "memory"), (3, "launches"))
    ]


def test_lines_and_untracked_are_the_whole() -> None:
    """The rows of the hottest lines, the rest and what is on no line share one iteration."""
    rows = "\n".join(f"train.py:{i + 1} f {i} 0" for i in range(12))
    table = breakdown(Index(profile_of(rows)), most_lines=3).lines
    assert [row[0] if isinstance(row[0], str) else row[0].plain for row in table.rows] == [
        "train.py:12",
        "train.py:11",
        "train.py:10",
        "9 more",
        "on no line",
    ]
    assert [row[4] for row in table.rows] == ["11 %", "10 %", "9 %", "36 %", "34 %"]


def test_memory_of_a_preview() -> None:
    """Weights, gradients and optimizer state stay, activations grow with the batch, the rest is other."""
    preview = Preview(batch_size=32, prediction=prediction_of(32, run_time_ms=180, peak_bytes=1700 * MIB))
    rows = {row[0]: row[1] for row in memory_table(profile_of(STEP), preview).rows}
    assert rows == {
        "weights": "100 MiB",
        "gradients": "100 MiB",
        "optimizer": "200 MiB",
        "activations": "1.2 GiB",
        "other": "100 MiB",
        "peak": "1.7 GiB",
    }


SIZES = st.integers(min_value=0, max_value=2**36)


@given(st.tuples(SIZES, SIZES, SIZES, SIZES, SIZES))
def test_memory_shares_are_a_whole(sizes: tuple[int, int, int, int, int]) -> None:
    """The classes' shares of the peak sum to all of it, up to rounding."""
    profile = profile_of(STEP)
    weights, gradients, optimizer, activations, other = sizes
    profile = replace(
        profile,
        iteration=replace(profile.iteration, peak_bytes=sum(sizes)),
        memory=Memory(
            weights_bytes=weights,
            gradients_bytes=gradients,
            optimizer_bytes=optimizer,
            activations_bytes=activations,
            other_bytes=other,
        ),
    )
    *classes, peak = memory_table(profile).rows
    shares = [float(str(row[2]).removesuffix(" %").removeprefix("<")) for row in classes]
    assert peak[0] == "peak"
    if sum(sizes):
        assert abs(sum(shares) - 100) <= 0.5 * len(shares)


def test_a_profile_without_lines_has_a_summary() -> None:
    """A partial profile, whose lines are still to come, has its figures."""
    partial = profile_of("")
    tables = breakdown(Index(partial))
    assert headline_parts(partial)
    assert [row[0] for row in tables.lines.rows] == ["on no line"]
    assert tables.phases.rows == ()
