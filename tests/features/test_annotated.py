"""Source with its costs beside it."""

from skyline_lsp.features import Index, Options, annotated_lines, files_by_cost, near_costs
from tests.features.building import STEP, profile_of, snapshot_of

TEXT = "\n".join(f"line {i}" for i in range(1, 21))


def test_every_line_is_there() -> None:
    """Each line of the file is given once, in order, with its source and, where it has any, its cells."""
    lines = annotated_lines(snapshot_of(TEXT, profile=profile_of(STEP)))
    assert [line.line for line in lines] == list(range(1, 21))
    assert lines[0].source == "line 1"
    assert lines[0].cost is None
    step = lines[10]
    assert (step.forward, step.backward, step.share, step.memory) == ("19 ms", "24 ms", "43 %", "438 MiB")
    assert step.heat == 1.0


def test_lines_below_the_threshold_keep_their_numbers() -> None:
    """A line that is not worth a cell can still be counted with."""
    line = annotated_lines(snapshot_of(TEXT, profile=profile_of(STEP)))[11]
    assert (line.forward, line.backward, line.share, line.memory) == ("", "", "", "")
    assert line.cost is not None
    assert line.cost.backward_ms == 0.5


def test_memory_can_be_left_out() -> None:
    """The setting that leaves memory out of hints leaves it out here."""
    lines = annotated_lines(snapshot_of(TEXT, profile=profile_of(STEP), options=Options(show_memory=False)))
    assert lines[10].memory == ""


def test_heat_is_the_line_s_own() -> None:
    """The hottest line of a file is the one with the largest self time, not the one that calls it."""
    profile = profile_of("train.py:2 step 1 0\n  train.py:5 layer 8 0\n  train.py:6 layer 4 0")
    lines = annotated_lines(snapshot_of(TEXT, profile=profile))
    assert [lines[i].heat for i in (1, 4, 5)] == [0.125, 1.0, 0.5]


def test_a_file_without_profile_is_its_source() -> None:
    """Before a run there is nothing beside the source."""
    assert all(line.cost is None for line in annotated_lines(snapshot_of(TEXT)))


def test_stretches_around_costs() -> None:
    """A long file can be cut down to what has a cost and a little around it."""
    profile = profile_of("train.py:3 a 10 0\ntrain.py:6 b 10 0\ntrain.py:19 c 10 0")
    stretches = near_costs(annotated_lines(snapshot_of(TEXT, profile=profile)), context=2)
    assert [[line.line for line in stretch] for stretch in stretches] == [list(range(1, 9)), [17, 18, 19, 20]]


def test_files_by_cost() -> None:
    """Files come with the sum of their lines' self times, the costliest first."""
    files = files_by_cost(Index(profile_of(STEP)))
    assert [(file.path, round(file.self_ms, 3), round(file.share_percent, 3)) for file in files] == [
        ("conv.py", 26.0, 26.0),
        ("net.py", 16.6, 16.6),
        ("train.py", 1.0, 1.0),
    ]
