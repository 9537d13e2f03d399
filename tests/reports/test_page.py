"""The page: one file, whole, that shows the program's text and never obeys it."""

import re
from html.parser import HTMLParser
from typing import Any

from skyline_lsp.protocol import MemoryEvent, ParameterCost, Remark, RemarkKind
from skyline_lsp.reports import Report, recognise_html, to_html
from tests.features.building import MIB, STEP, profile_of

VOID = {"meta"}


class Page(HTMLParser):
    """Elements and text of a page, as a browser takes them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.rows: dict[str, list[str]] = {}
        self._row: list[str] | None = None
        self.feed(text)
        self.close()
        assert self.open == [], "elements left open"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr" and (identity := dict(attrs).get("id")):
            self._row = self.rows.setdefault(identity, [])
        elif tag == "td" and self._row is not None:
            self._row.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "tr":
            self._row = None

    def handle_data(self, data: str) -> None:
        if self._row:
            self._row[-1] += data


def page_of(sources: dict[str, str], drawing: str = STEP, **changes: Any) -> Page:
    return Page(to_html(Report(profile=profile_of(drawing, **changes), sources=sources)))


def check_row(page: Page, path: str, line: int, *cells: str) -> None:
    assert page.rows[f"f{path.encode().hex()}-{line}"] == list(cells)


def test_source_stands_beside_its_costs() -> None:
    """Every line of a file, with the cells of those that cost."""
    page = page_of({"net.py": "\n".join(f"line {n}" for n in range(1, 9))})
    check_row(page, "net.py", 5, "", "", "", "", "", "5", "line 5")
    check_row(page, "net.py", 6, "13 ms", "16 ms", "30 %", "428 MiB", "x16", "6", "line 6")


def test_what_the_program_says_is_text() -> None:
    """Markup in source, names, messages and paths stays what it was: shown, not obeyed."""
    evil = "</td></table><script>alert(1)</script><img src=\"x\" onerror='y'>&amp;"
    page = page_of(
        {'a"<b>.py': evil},
        "a.py:1 f 60 0\n",
        warnings=(evil,),
        remarks=(Remark(kind=RemarkKind.GRAPH_BREAK, path='a"<b>.py', line=1, message=evil),),
        parameters=(ParameterCost(name=evil, weight_bytes=1, gradient_bytes=1),),
        torch_version=evil,
    )
    assert not {tag for tag, _ in page.elements} & {"script", "img", "b"}
    quoted = page_of({"net.py": "\n" * 5 + evil})
    check_row(quoted, "net.py", 6, "13 ms", "16 ms", "30 %", "428 MiB", "x16", "6", evil)


def test_characters_that_deceive_are_replaced() -> None:
    """Text that a browser would reorder or hide is marked; a coding line changes nothing."""
    page = page_of({"net.py": "# coding: latin-1\n\n\n\n\nx = '\u540d'  # \u202e\x1b[2J"})
    check_row(page, "net.py", 6, "13 ms", "16 ms", "30 %", "428 MiB", "x16", "6", "x = '\u540d'  # \ufffd\ufffd[2J")


def test_the_page_asks_for_nothing() -> None:
    """No script, no address but places within the page."""
    page = page_of({"net.py": "x\n" * 8})
    for tag, attributes in page.elements:
        assert tag not in ("script", "link", "iframe", "object")
        assert not attributes.keys() & {"src", "onclick", "onload"}
        assert (attributes.get("href") or "#").startswith("#")
    policy = [a["content"] for tag, a in page.elements if "http-equiv" in a]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_links_lead_to_lines() -> None:
    """Each line that a table names and whose text is there can be jumped to."""
    page = page_of(dict.fromkeys(("net.py", "conv.py", "train.py"), "x\n" * 30))
    targets = [href[1:] for tag, a in page.elements if tag == "a" and (href := a.get("href"))]
    assert targets
    assert set(targets) <= set(page.rows)


def test_the_memory_time_line_keeps_its_peak() -> None:
    """However many events there are, the highest is drawn at the top and named."""
    timeline = tuple(MemoryEvent(time_ms=i, live_bytes=MIB + i % 7) for i in range(50_000))
    timeline = (*timeline[:31_337], MemoryEvent(time_ms=31_337, live_bytes=900 * MIB), *timeline[31_338:])
    text = to_html(Report(profile=profile_of(STEP, timeline=timeline)))
    assert "peak 900 MiB" in text
    path = re.search(r'class="line" d="([^"]*)"', text)
    assert path is not None
    assert "V18.0" in path[1]
    assert len(path[1]) < 100_000


def test_an_empty_profile_has_a_page() -> None:
    """Nothing measured is said, not drawn."""
    text = to_html(Report(profile=profile_of("")))
    Page(text)
    assert "No project line has a cost" in text
    assert recognise_html(text.encode()[:1024])
