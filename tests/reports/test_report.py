"""The JSON form of a report."""

import json

import pytest

from skyline_lsp.protocol import to_json
from skyline_lsp.reports import NotAReport, Report, read_json, to_json_text
from tests.features.building import STEP, profile_of

REPORT = Report(profile=profile_of(STEP), sources={"net.py": "x = '\u540d'\n"})


def check_refused(text: str, reason: str) -> None:
    with pytest.raises(NotAReport, match=reason):
        read_json(text)


def test_what_is_written_is_read_again() -> None:
    """Nothing is lost, the text of the files included."""
    assert read_json(to_json_text(REPORT)) == REPORT


def test_a_profile_as_json_is_a_report_without_sources() -> None:
    """What `profile --json` prints can be compared, too."""
    assert read_json(json.dumps(to_json(REPORT.profile))) == Report(profile=REPORT.profile)


def test_what_is_no_report_is_refused_with_the_reason() -> None:
    """Other JSON, other versions, parts of a report, and trees that lead nowhere."""
    whole = json.loads(to_json_text(REPORT))
    check_refused("{", "not JSON")
    check_refused("[" * 100_000, "not JSON")
    check_refused('{"a": 1}', "not a report")
    check_refused(json.dumps(whole | {"schema": 99}), "schema 99")
    check_refused(json.dumps(whole | {"lines": 3}), "Profile.lines")
    check_refused(json.dumps(whole | {"sources": {"net.py": 3}}), "sources.net.py")
    whole["tree"][2]["parent"] = 2
    check_refused(json.dumps(whole), r"tree\[2\].parent")
