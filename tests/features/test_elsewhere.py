"""What is shown of devices that aren't here."""

from typing import Any

from skyline_lsp.features import Preview, code_actions, code_lenses, hover
from skyline_lsp.features.command import ESTIMATE
from skyline_lsp.features.elsewhere import device_sentence, on_device
from skyline_lsp.prediction import DeviceSpec, exact_peak, parse_device
from tests.features.building import GIB, PEAKS, PROVIDERS, STEP, prediction_of, profile_of, snapshot_of

SIZE_LINE, ENTRY_LINE = 6, 9


def device_of(name: str) -> DeviceSpec:
    found = parse_device(name)
    assert isinstance(found, DeviceSpec)
    return found


def titles(**given: Any) -> list[str]:
    """Of the lenses that ask about devices."""
    shot = snapshot_of(PROVIDERS, **given)
    return [lens.command.title for lens in code_lenses(shot) if lens.command.name == ESTIMATE]


def test_a_sentence_has_the_peak_its_allowance_and_the_time() -> None:
    """Peak 3 GiB, a tenth and half a GiB of allowance; what needs no device is left as it is."""
    tree = "train.py:11 step 8 2 flop=10000000000 moved=1MiB"
    profile = profile_of(tree, peaks=PEAKS, untracked_ms=0.0)
    there = on_device(exact_peak(16, 3 * GIB), device_of("A100-40GB"), profile)
    assert device_sentence(there) == (
        "A100 SXM 40GB: peak 3 GiB (to 3.8 GiB with allowance) of 40 GiB, fits; about 1.5 ms an iteration, "
        "estimate 0.64 to 3.4 ms"
    )
    other = on_device(exact_peak(32, 3 * GIB), device_of("A100-40GB"), profile)
    assert "an iteration of batch size 16, estimate" in device_sentence(other)


def test_what_is_not_known_is_said() -> None:
    """Without a profile there is a way to get the time; with a size for a device there is none."""
    (remark,) = on_device(exact_peak(16, GIB), device_of("A100-40GB"), None).remarks
    assert "profile" in remark
    (remark,) = on_device(exact_peak(16, GIB), device_of("24GiB"), profile_of(STEP, peaks=PEAKS)).remarks
    assert "memory alone" in remark


def test_lenses_answer_for_the_shown_batch_size() -> None:
    """A device whose answer is known has it, another has the question; a preview asks about its own batch size."""
    devices = (device_of("A100-40GB"), device_of("24GiB"))
    assert titles() == []
    assert titles(devices=devices) == ["fits A100 SXM 40GB?", "fits 24GiB?"]
    found = (exact_peak(16, 23.9 * GIB),)
    assert titles(devices=devices, peaks_found=found) == [
        "A100 SXM 40GB: peak 23.9 GiB of 40 GiB, fits",
        "24GiB: peak 23.9 GiB of 24 GiB, may not fit",
    ]
    preview = Preview(batch_size=32, prediction=prediction_of(32, run_time_ms=180, peak_bytes=2 * GIB))
    previewed = {"profile": profile_of(STEP), "preview": preview, "devices": devices, "peaks_found": found}
    assert titles(**previewed) == ["fits A100 SXM 40GB?", "fits 24GiB?"]


def test_the_hover_has_a_table_and_its_remarks_once() -> None:
    """Every batch size whose peak was found, on every device; why real runs were made, where they were."""
    shot = snapshot_of(
        PROVIDERS,
        devices=(device_of("A100-40GB"), device_of("24GiB")),
        peaks_found=(exact_peak(16, GIB), exact_peak(64, 30 * GIB)),
    )
    found = hover(shot, SIZE_LINE, 38)
    assert found is not None
    rows = [row.split() for row in found.plain.splitlines() if row.startswith(("A100", "24GiB"))]
    assert [(row[0], "no" in row) for row in rows] == [
        ("A100", False),
        ("24GiB", False),
        ("A100", False),
        ("24GiB", True),
    ]
    assert found.plain.count("profile the training step") == 1
    at_step = hover(shot, ENTRY_LINE, 0)
    assert at_step is not None
    assert "A100 SXM 40GB: peak 1 GiB" in at_step.plain


def test_actions_ask_about_devices_that_are_not_answered_for() -> None:
    """Each device of the settings, and always another one."""
    shot = snapshot_of(
        PROVIDERS, devices=(device_of("A100-40GB"), device_of("24GiB")), peaks_found=(exact_peak(16, GIB),)
    )
    asked = [action.title for action in code_actions(shot, SIZE_LINE, SIZE_LINE) if "fits" in action.title]
    assert asked == ["Find out whether batch size 16 fits another device"]
    shot = snapshot_of(PROVIDERS, devices=(device_of("24GiB"),))
    asked = [action.title for action in code_actions(shot, SIZE_LINE, SIZE_LINE) if "fits" in action.title]
    assert asked == [
        "Find out whether batch size 16 fits 24GiB",
        "Find out whether batch size 16 fits another device",
    ]
