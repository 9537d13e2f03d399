"""Devices that need not be there: memory, peak rates and bandwidth, as their makers publish them.

Rates are dense (without structured sparsity) and with 32-bit accumulation, which is what PyTorch asks for. Where a data
sheet gives the rate with sparsity only, it is halved: that is what sparsity is worth on all of these.
"""

import difflib
import re
from dataclasses import dataclass

from skyline_lsp.prediction.refusal import Refusal

GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpec:
    """What is known of a device without having it."""

    name: str
    memory_bytes: int
    """What the device has. Programs can have a few per cent less: the driver and each process's context take some."""
    flop_per_second: dict[str, float]
    """Data type ("float32", "tf32", "float16", "bfloat16") -> peak rate; those that it has no units for are absent."""
    bytes_per_second: float | None
    """Peak memory bandwidth; None where not known."""
    source: str
    """Where the numbers are from."""


def _device(
    name: str,
    gib: float,
    gigabytes_per_second: float,
    source: str,
    *,
    float32: float,
    tf32: float | None = None,
    half: float,
    bfloat16: bool = True,
    ecc_in_memory: bool = False,
) -> DeviceSpec:
    """Rates in TFLOP/s; `half` for float16, and for bfloat16 where the device has it."""
    rates = {"float32": float32, "tf32": tf32, "float16": half, "bfloat16": half if bfloat16 else None}
    return DeviceSpec(
        name=name,
        # Data sheets count memory in units of 2^30 bytes. GDDR memory keeps its check bits in itself: one part in 16.
        memory_bytes=int(gib * GIB * (15 / 16 if ecc_in_memory else 1)),
        flop_per_second={kind: rate * 1e12 for kind, rate in rates.items() if rate is not None},
        bytes_per_second=gigabytes_per_second * 1e9,
        source=source,
    )


_A100 = "NVIDIA A100 Tensor Core GPU data sheet"
_H100 = "NVIDIA H100 Tensor Core GPU data sheet"
_V100 = "NVIDIA Tesla V100 GPU Accelerator data sheet"
_AMPERE = "NVIDIA Ampere GA102 GPU Architecture white paper"
_ADA = "NVIDIA Ada GPU Architecture white paper"

DEVICES: tuple[DeviceSpec, ...] = (
    _device("NVIDIA A100 SXM 40GB", 40, 1555, _A100, float32=19.5, tf32=156, half=312),
    _device("NVIDIA A100 PCIe 40GB", 40, 1555, _A100, float32=19.5, tf32=156, half=312),
    _device("NVIDIA A100 SXM 80GB", 80, 2039, _A100, float32=19.5, tf32=156, half=312),
    _device("NVIDIA A100 PCIe 80GB", 80, 1935, _A100, float32=19.5, tf32=156, half=312),
    _device("NVIDIA H100 SXM 80GB", 80, 3350, _H100, float32=67, tf32=494.5, half=989.5),
    _device("NVIDIA H100 PCIe 80GB", 80, 2000, _H100, float32=51, tf32=378, half=756.5),
    _device(
        "NVIDIA H200 SXM 141GB", 141, 4800, "NVIDIA H200 Tensor Core GPU data sheet", float32=67, tf32=494.5, half=989.5
    ),
    _device("NVIDIA V100 SXM 16GB", 16, 900, _V100, float32=15.7, half=125, bfloat16=False),
    _device("NVIDIA V100 SXM 32GB", 32, 900, _V100, float32=15.7, half=125, bfloat16=False),
    _device("NVIDIA V100 PCIe 16GB", 16, 900, _V100, float32=14, half=112, bfloat16=False),
    _device("NVIDIA V100 PCIe 32GB", 32, 900, _V100, float32=14, half=112, bfloat16=False),
    _device(
        "NVIDIA T4 16GB",
        16,
        320,
        "NVIDIA T4 Tensor Core GPU data sheet",
        float32=8.1,
        half=65,
        bfloat16=False,
        ecc_in_memory=True,
    ),
    _device(
        "NVIDIA L4 24GB",
        24,
        300,
        "NVIDIA L4 Tensor Core GPU data sheet",
        float32=30.3,
        tf32=60,
        half=121,
        ecc_in_memory=True,
    ),
    _device(
        "NVIDIA L40S 48GB", 48, 864, "NVIDIA L40S GPU data sheet", float32=91.6, tf32=183, half=362, ecc_in_memory=True
    ),
    _device(
        "NVIDIA A10 24GB",
        24,
        600,
        "NVIDIA A10 Tensor Core GPU data sheet",
        float32=31.2,
        tf32=62.5,
        half=125,
        ecc_in_memory=True,
    ),
    _device("NVIDIA RTX A6000 48GB", 48, 768, _AMPERE, float32=38.7, tf32=77.4, half=154.8, ecc_in_memory=True),
    _device("NVIDIA GeForce RTX 3090 24GB", 24, 936, _AMPERE, float32=35.6, tf32=35.6, half=71),
    _device("NVIDIA GeForce RTX 4090 24GB", 24, 1008, _ADA, float32=82.6, tf32=82.6, half=165.2),
    _device(
        "NVIDIA GeForce RTX 3060 12GB",
        12,
        360,
        "NVIDIA GeForce RTX 3060 specifications; tensor rates from its 112 tensor cores at 1.777 GHz and the rate "
        f"of one in the {_AMPERE}",
        float32=12.7,
        tf32=12.7,
        half=25.5,
    ),
    _device(
        "AMD Instinct MI250X 64GB, one of two dies",
        64,
        1638.4,
        "AMD Instinct MI250X accelerator data sheet, halved: PyTorch sees each die as a device",
        float32=47.9,
        half=191.5,
    ),
    _device(
        "AMD Instinct MI300X 192GB",
        192,
        5300,
        "AMD Instinct MI300X accelerator data sheet",
        float32=163.4,
        tf32=653.7,
        half=1307.4,
    ),
)

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(b|[kmgt]i?b?)\s*", re.IGNORECASE)
_POWERS = {"b": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SAYS_NOTHING = {
    "nvidia",
    "amd",
    "geforce",
    "instinct",
    "tesla",
    "gpu",
    "hbm2",
    "hbm2e",
    "hbm3",
    "hbm3e",
    "gb",
    "gib",
    "rtx",
}


def parse_device(text: str) -> DeviceSpec | Refusal:
    """A device from its name, as loosely as people write it, or from a memory size such as "24GiB".

    With a size, rates and bandwidth are not known. "GB" counts as 10^9 bytes, "GiB" and "G" as 2^30.
    """
    size = parse_size(text)
    if size is not None:
        return DeviceSpec(
            name=text.strip(),
            memory_bytes=size,
            flop_per_second={},
            bytes_per_second=None,
            source="given by the user",
        )
    asked = _words(text)
    # A number of up to three digits is a memory size, and names no device by itself.
    if all(len(word) <= 3 and word.isdigit() for word in asked):
        return Refusal(
            reason=f"No device is named by {text!r}; give a name such as A100-40GB, or memory such as 24GiB."
        )
    found = [device for device in DEVICES if asked <= _words(device.name)]
    if not found:
        keys = {" ".join(sorted(_words(device.name))): device.name for device in DEVICES}
        near = ", ".join(keys[key] for key in difflib.get_close_matches(" ".join(sorted(asked)), keys, 3, 0.4))
        return Refusal(
            reason=f"{text.strip()} is not in the table of devices{f' (near: {near})' if near else ''}; give its "
            "memory instead, such as 24GiB."
        )
    if len({device.memory_bytes for device in found}) > 1:
        names = ", ".join(device.name for device in found)
        return Refusal(reason=f"{text.strip()} may be any of {names}; say which.")
    return found[0]


def parse_size(text: str) -> int | None:
    """Bytes of "24GiB", "24 GB" or "512M"; None where it is no size."""
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    unit = match[2].lower()
    base = 1000 if len(unit) == 2 and unit != "b" and unit.endswith("b") else 1024
    return int(float(match[1]) * base ** _POWERS[unit[0]])


def _words(name: str) -> frozenset[str]:
    """What tells devices apart in a name: "NVIDIA A100-SXM4-40GB" -> {"a100", "sxm", "40"}."""
    words = re.findall(r"[a-z]*\d+[a-z]*|[a-z]+", name.lower().split(",")[0])
    plain = (re.sub(r"^(\d+)gi?b?$", r"\1", re.sub(r"^sxm\d$", "sxm", word.removeprefix("rtx"))) for word in words)
    return frozenset(word for word in plain if word and word not in _SAYS_NOTHING)
