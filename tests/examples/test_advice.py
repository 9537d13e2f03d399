"""The examples are well written: nothing is advised but what they leave out on purpose."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from skyline_lsp.features.advice import AdviceCode, advise
from skyline_lsp.protocol import Profile, from_json

EXAMPLES = Path(__file__).parents[2] / "examples"
TRUE = {AdviceCode.FUSED_OPTIMIZER}
"""They take torch's default optimizers, which are not fused; where these take long, it is said."""


@pytest.mark.parametrize("name", ["dcgan", "gpt", "lstm_lm", "resnet50"])
@pytest.mark.timeout(600)
def test_no_false_alarm(name: str) -> None:
    """On a CPU no advice is given for an example but on its optimizer."""
    folder = EXAMPLES / name
    command = [
        sys.executable,
        "-m",
        "skyline_lsp",
        "profile",
        str(folder / "providers.py"),
        "--batch-size",
        "2",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    profile = from_json(Profile, json.loads(done.stdout))
    assert profile.lines
    root = next(folder for folder in (folder, *folder.parents) if (folder / next(iter(profile.files))).is_file())
    advice = advise(profile, {path: (root / path).read_text(encoding="utf-8") for path in profile.files})
    if profile.device.kind == "cpu":
        assert [one for one in advice if one.code not in TRUE] == []
