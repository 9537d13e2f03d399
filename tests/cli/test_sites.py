"""When a place counts as proven."""

from fractions import Fraction

from skyline_lsp.cli.sites import follows
from skyline_lsp.protocol import BatchReport


def check_follows(before: tuple[tuple[int, ...], ...], after: tuple[tuple[int, ...], ...], expected: bool) -> None:
    """As a batch size of 8 is made 4."""
    assert follows(BatchReport(shapes=before), BatchReport(shapes=after), 4, Fraction(4, 8)) is expected


def test_the_batch_that_the_model_sees_changed() -> None:
    """A first dimension that changed as the value did proves the place."""
    check_follows(((8, 3, 64, 64),), ((4, 3, 64, 64),), True)


def test_any_dimension_of_any_input_may_hold_the_batch() -> None:
    """Sequences come first in a language model's input, and the batch may be flattened into another dimension."""
    check_follows(((35, 8),), ((35, 4),), True)
    check_follows(((10,), (8 * 35,)), ((10,), (4 * 35,)), True)


def test_an_unchanged_batch_proves_nothing() -> None:
    """A place without effect is told apart, also where other dimensions vary by themselves."""
    check_follows(((8, 3),), ((8, 3),), False)
    check_follows(((8, 31),), ((8, 29),), False)


def test_a_model_that_was_not_seen_proves_nothing() -> None:
    """Without tensor inputs, or without a report, there is no proof."""
    check_follows((), (), False)
    assert follows(None, BatchReport(shapes=((4,),)), 4, Fraction(1, 2)) is False


def test_the_length_of_a_sequence_is_no_batch_size() -> None:
    """Where it is known which dimension is the batch's, another one that changes proves nothing."""
    before, after = BatchReport(shapes=((8, 6),), batch_size=6), BatchReport(shapes=((4, 6),), batch_size=6)
    assert follows(before, after, 4, Fraction(4, 8)) is False
    after = BatchReport(shapes=((8, 3),), batch_size=3)
    assert follows(before, after, 3, Fraction(3, 6)) is True


def test_a_size_that_the_program_finds() -> None:
    """A site that says -1 is followed when another number there is the batch."""
    assert follows(BatchReport(shapes=((16, 2),)), BatchReport(shapes=((3, 2),)), 3, Fraction(3, -1)) is True
    assert follows(BatchReport(shapes=((16, 3),)), BatchReport(shapes=((16, 3),)), 3, Fraction(3, -1)) is False
