"""FLOP and bytes as they are shown: of a line against what the device can do, and of the iteration."""

from skyline_lsp.features.document import Block, paragraph
from skyline_lsp.features.table import Cell, Table
from skyline_lsp.features.units import format_byte_rate, format_bytes, format_flop, format_flop_rate, format_percent
from skyline_lsp.prediction.roofline import Bound, StepBound, line_roofline, step_roofline
from skyline_lsp.protocol import LineCost, Profile

_SHORT = {Bound.COMPUTE: "compute", Bound.MEMORY: "memory", Bound.LAUNCH: "launches", Bound.UNKNOWN: ""}


def work_blocks(profile: Profile, cost: LineCost) -> list[Block]:
    """A table of a line's own work and a sentence on what bounds it; nothing where it was not counted."""
    roofline = line_roofline(cost, profile.peaks) if profile.peaks is not None else None
    if roofline is None:
        return []
    rows: list[tuple[str | Cell, ...]] = []
    if roofline.flop:
        rows.append(
            (
                f"FLOP ({roofline.flop_type})" if roofline.flop_type else "FLOP",
                format_flop(roofline.flop),
                format_flop_rate(roofline.flop_per_second),
                "" if roofline.utilisation is None else format_percent(100 * roofline.utilisation),
            )
        )
    if roofline.bytes_moved:
        rows.append(
            (
                "bytes, at least",
                format_bytes(roofline.bytes_moved),
                format_byte_rate(roofline.bytes_per_second),
                format_percent(100 * roofline.bandwidth_share),
            )
        )
    if roofline.operations:
        rows.append(("operations", str(roofline.operations), "", format_percent(100 * roofline.launch_share)))
    intensity = "" if not roofline.intensity else f", at {_intensity(roofline.intensity)} for each byte"
    verdict = "Not known what bounds it" if roofline.bound is Bound.UNKNOWN else roofline.bound.value.capitalize()
    return [
        Table(header=("work of this line itself", "amount", "rate", "of the best"), rows=tuple(rows)),
        paragraph(f"{verdict}{intensity}. {roofline.reason}"),
    ]


def bound_of(profile: Profile, cost: LineCost) -> str:
    """What bounds a line, in a word: "compute", "memory", "launches"; empty where not known."""
    roofline = line_roofline(cost, profile.peaks) if profile.peaks is not None else None
    return "" if roofline is None else _SHORT[roofline.bound]


def step_sentences(profile: Profile) -> list[str]:
    """The iteration's FLOP rate and utilisation, and what it is bound by; none where not known."""
    roofline = step_roofline(profile)
    if roofline is None:
        return []
    sentences = []
    if roofline.flop:
        best = ""
        if roofline.utilisation is not None:
            best = f", {format_percent(100 * roofline.utilisation)} of the device's measured best"
        sentences.append(
            f"It computes {format_flop(roofline.flop)} at {format_flop_rate(roofline.flop_per_second)}{best}."
        )
    if roofline.bound is StepBound.UNKNOWN:
        sentences.append(f"What bounds it is not known. {roofline.reason}")
    else:
        sentences.append(f"It is {roofline.bound.value}. {roofline.reason}")
    return sentences


def _intensity(flop_per_byte: float) -> str:
    return f"{flop_per_byte:.2g} FLOP" if flop_per_byte < 100 else f"{flop_per_byte:.0f} FLOP"
