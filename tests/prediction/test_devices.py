"""Devices by name or memory size, as loosely as people write them."""

import pytest

from skyline_lsp.prediction import DEVICES, DeviceSpec, Refusal, parse_device, parse_size

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("A100-40GB", "NVIDIA A100 SXM 40GB"),
        ("a100 40", "NVIDIA A100 SXM 40GB"),
        ("NVIDIA A100-SXM4-40GB", "NVIDIA A100 SXM 40GB"),
        ("NVIDIA A100 80GB PCIe", "NVIDIA A100 PCIe 80GB"),
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 SXM 80GB"),
        ("h100 pcie", "NVIDIA H100 PCIe 80GB"),
        ("H200", "NVIDIA H200 SXM 141GB"),
        ("Tesla V100-SXM2-16GB", "NVIDIA V100 SXM 16GB"),
        ("v100 32", "NVIDIA V100 SXM 32GB"),
        ("Tesla T4", "NVIDIA T4 16GB"),
        ("l4", "NVIDIA L4 24GB"),
        ("L40S", "NVIDIA L40S 48GB"),
        ("A10", "NVIDIA A10 24GB"),
        ("NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 3090 24GB"),
        ("rtx4090", "NVIDIA GeForce RTX 4090 24GB"),
        ("3060-12GB", "NVIDIA GeForce RTX 3060 12GB"),
        ("mi250x", "AMD Instinct MI250X 64GB, one of two dies"),
        ("AMD Instinct MI300X", "AMD Instinct MI300X 192GB"),
    ],
)
def test_names_are_found(text: str, name: str) -> None:
    """Names as in data sheets, as drivers report them, and as people type them."""
    device = parse_device(text)
    assert isinstance(device, DeviceSpec)
    assert device.name == name


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)
def test_every_device_is_found_by_its_own_name(device: DeviceSpec) -> None:
    """And its numbers are of the right order, with their source."""
    assert parse_device(device.name) == device
    assert 10 * GIB < device.memory_bytes < 300 * GIB
    assert device.bytes_per_second is not None
    assert 1e11 < device.bytes_per_second < 1e13
    rates = device.flop_per_second
    assert 5e12 < rates["float32"] <= rates.get("tf32", rates["float32"]) <= rates["float16"] < 2e15
    assert device.source


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("A100", "may be any of"),
        ("v100", "say which"),
        ("A10G", "near: NVIDIA A10 24GB"),
        ("L40", "not in the table"),
        ("banana", "not in the table"),
        ("80%", "No device is named"),
        ("", "No device is named"),
    ],
)
def test_what_is_not_known_is_refused(text: str, reason: str) -> None:
    """An ambiguous or unknown name gets a reason with the way out, never another device's numbers."""
    refusal = parse_device(text)
    assert isinstance(refusal, Refusal)
    assert reason in refusal.reason


@pytest.mark.parametrize(
    ("text", "size"),
    [("24GiB", 24 * GIB), ("24 gb", 24 * 10**9), ("1.5G", 3 * GIB // 2), ("512m", 512 * 2**20), ("1000 B", 1000)],
)
def test_memory_sizes_are_read(text: str, size: int) -> None:
    """A size is a device of which only the memory is known."""
    assert parse_size(text) == size
    device = parse_device(text)
    assert isinstance(device, DeviceSpec)
    assert device.memory_bytes == size
    assert device.flop_per_second == {}


@pytest.mark.parametrize("text", ["24", "GiB", "-1GiB", "80%", "24 parsec"])
def test_other_text_is_no_size(text: str) -> None:
    """A number needs a unit."""
    assert parse_size(text) is None
