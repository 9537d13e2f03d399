"""The documentation lists the advice that there is."""

import re
from pathlib import Path

from skyline_lsp.features.advice import AdviceCode
from skyline_lsp.protocol import RemarkKind


def test_every_code_is_documented() -> None:
    """docs/advice.md has a row for each code, and no other."""
    text = (Path(__file__).parents[3] / "docs" / "advice.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE)
    assert sorted(listed) == sorted([*(code.value for code in AdviceCode), *(kind.value for kind in RemarkKind)])
