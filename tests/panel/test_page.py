"""The page in a real Chromium, against the real server: pulled, typed at, zoomed, searched, attacked."""

import asyncio
import contextlib
import os
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from skyline_lsp.features import State
from skyline_lsp.panel import PanelFailure, PanelState
from skyline_lsp.panel.server import PanelServer
from skyline_lsp.protocol import Device, Profile
from tests.panel.building import MIB, Host, large_tree, model_of, peak_bytes, profile_of, small_tree, state_of

playwright = pytest.importorskip("playwright.async_api", reason="make test-panel installs the browser's driver")

pytestmark = pytest.mark.browser

ROW_PX = 24
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> str:
    """The browser to drive: CHROMIUM, else the system's."""
    named = os.environ.get("CHROMIUM")
    found = named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert found, "no Chromium here: install one (Debian: apt install chromium), or name it in CHROMIUM"
    return found


class Panel:
    """An open page, its server and its host."""

    def __init__(self, page: Any, host: Host, server: PanelServer) -> None:
        self.page = page
        self.host = host
        self.server = server
        self.asked = host.asked

    def slider(self, name: str) -> Any:
        """A bar, by its accessible name."""
        return self.page.get_by_role("slider", name=name)

    async def previewed(self) -> int:
        """The batch size that is shown."""
        return int(await self.page.get_by_label("Batch size", exact=True).input_value())

    async def pull(self, name: str, pixels: float, release: bool = True) -> None:
        """Pull a bar's end by so many pixels."""
        handle = await self.slider(name).locator(".bar-handle").bounding_box()
        x, y = handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2
        await self.page.mouse.move(x, y)
        await self.page.mouse.down()
        await self.page.mouse.move(x + pixels, y, steps=8)
        if release:
            await self.page.mouse.up()

    async def point(self, icicle: str, node: int, profile: Profile | None = None) -> tuple[float, float]:
        """Where a row of the call tree is on the time icicle, seen whole."""
        profile = profile or self.host.current.profile
        assert profile is not None
        left, right, depth = extent(profile, node)
        box = await self.page.locator(f"#{icicle}").bounding_box()
        return box["x"] + (left + right) / 2 * box["width"], box["y"] + (depth + 0.5) * ROW_PX

    async def crumbs(self, icicle: str = "time") -> list[str]:
        """The path to what fills an icicle's view."""
        return await self.page.get_by_role("navigation", name=f"path in {icicle}").locator(".crumb").all_inner_texts()

    async def picture(self, icicle: str) -> str:
        """What is drawn, once nothing moves any more."""
        drawn = ""
        while True:
            now = await self.page.evaluate(
                """async (id) => {
                  await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
                  return document.querySelector(`#${id} canvas`).toDataURL();
                }""",
                icicle,
            )
            if now == drawn:
                return now
            drawn = now


def extent(profile: Profile, node: int) -> tuple[float, float, int]:
    """Left and right edge (0 to 1) and row of a node in the time icicle: children in order, from the left."""
    tree = profile.tree
    inclusive = [item.self_forward_ms + item.self_backward_ms for item in tree]
    for index in range(len(tree) - 1, -1, -1):
        if tree[index].parent >= 0:
            inclusive[tree[index].parent] += inclusive[index]
    whole = profile.untracked_ms + sum(inclusive[i] for i, item in enumerate(tree) if item.parent < 0)
    left, depth, at = 0.0, 0, node
    while at >= 0:
        parent = tree[at].parent
        left += sum(inclusive[i] for i in range(at) if tree[i].parent == parent)
        depth += 1
        at = parent
    return left / whole, (left + inclusive[node]) / whole, depth


@contextlib.asynccontextmanager
async def browsing(**context: Any) -> AsyncIterator[Any]:
    """A browser's page, which must raise no error and call no other machine."""
    async with playwright.async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        try:
            # Animations are for eyes; tests look at where they end.
            settings = {"viewport": {"width": 1440, "height": 1000}, "reduced_motion": "reduce", **context}
            page = await (await browser.new_context(**settings)).new_page()
            page.faults = []
            page.on("pageerror", lambda error: page.faults.append(str(error)))
            page.on("console", lambda message: message.type == "error" and page.faults.append(message.text))
            page.on("request", lambda request: check_loopback(page.faults, request.url))
            yield page
        finally:
            await browser.close()


def check_loopback(faults: list[str], url: str) -> None:
    """Note a request that leaves the machine."""
    if not url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "http://localhost:", "data:", "about:")):
        faults.append(f"a request to {url}")


@contextlib.asynccontextmanager
async def opened(state: PanelState | None = None, **context: Any) -> AsyncIterator[Panel]:
    """The panel of a state, open in a browser."""
    host = Host(state or state_of())
    server = PanelServer(host)
    host.changed = server.notify
    async with browsing(**context) as page:
        try:
            await page.goto(await server.start())
            await page.locator("h1:not(:empty)").wait_for()
            yield Panel(page, host, server)
            assert page.faults == []
        finally:
            await server.close()


@pytest.fixture
async def panel() -> AsyncIterator[Panel]:
    async with opened() as panel:
        yield panel


# -- pulling -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bar", ["Throughput", "Peak memory"])
async def test_a_pull_previews_and_its_release_edits(panel: Panel, bar: str) -> None:
    """While a bar is pulled its prediction moves with its interval; letting go edits once, with what was shown."""
    slider = panel.slider(bar)
    assert "measured" in await slider.get_attribute("aria-valuetext")
    await panel.pull(bar, 60, release=False)
    size = await panel.previewed()
    assert size > 16
    spoken = await slider.get_attribute("aria-valuetext")
    assert "between" in spoken
    assert f"batch size {size}, predicted" in spoken
    assert panel.asked == []
    await panel.page.mouse.up()
    await panel.host.until(1)
    assert panel.asked == [("apply", size)]
    await playwright.expect(panel.page.get_by_role("status").filter(has_text="undo it in the editor")).to_be_visible()
    await playwright.expect(slider).to_have_attribute("aria-valuetext", re.compile(f"batch size {size}, predicted"))


async def test_a_pull_moves_both_bars(panel: Panel) -> None:
    """Pulling at throughput shows what it costs in memory."""
    memory = panel.slider("Peak memory")
    before = float(await memory.get_attribute("aria-valuenow"))
    await panel.pull("Throughput", 60, release=False)
    assert float(await memory.get_attribute("aria-valuenow")) > before
    await panel.page.keyboard.press("Escape")
    assert float(await memory.get_attribute("aria-valuenow")) == before


async def test_the_axis_stands_still_under_a_pull(panel: Panel) -> None:
    """A place on the bar means one batch size for as long as the bar is held."""
    await panel.pull("Throughput", 100, release=False)
    near = await panel.previewed()
    box = await panel.slider("Throughput").bounding_box()
    sizes = []
    for beyond in (10, 500, 10):
        await panel.page.mouse.move(box["x"] + box["width"] + beyond, box["y"] + 10)
        sizes.append(await panel.previewed())
    assert sizes[0] > near
    assert len(set(sizes)) == 1


async def test_escape_gives_up_a_pull(panel: Panel) -> None:
    """Nothing is edited, even when the button is let go afterwards, and the bars are as they were."""
    await panel.pull("Throughput", 60, release=False)
    assert await panel.previewed() > 16
    await panel.page.keyboard.press("Escape")
    await panel.page.mouse.up()
    assert await panel.previewed() == 16
    assert "measured" in await panel.slider("Throughput").get_attribute("aria-valuetext")
    # The reply to a later wish tells that none was sent before it.
    await panel.page.get_by_role("button", name="Profile again").click()
    await panel.host.until(1)
    assert panel.asked == [("profile",)]


async def test_a_click_on_a_bar_edits_nothing(panel: Panel) -> None:
    """Only a pull rewrites the source."""
    await panel.slider("Throughput").click()
    await panel.page.get_by_role("button", name="Profile again").click()
    await panel.host.until(1)
    assert panel.asked == [("profile",)]


async def test_what_does_not_fit_is_shown_and_not_written() -> None:
    """A bar may be pulled past the device's memory to look; only an explicit wish writes such a size."""
    device = Device(kind="cuda", name="Small device", memory_bytes=2048 * MIB)
    async with opened(state_of(profile=profile_of(small_tree(), device=device))) as panel:
        await panel.pull("Peak memory", 2000)
        size = await panel.previewed()
        assert peak_bytes(size) > 2048 * MIB
        assert "does not fit" in await panel.slider("Peak memory").get_attribute("aria-valuetext")
        await playwright.expect(panel.page.get_by_text("so nothing was edited")).to_be_visible()
        assert panel.asked == []
        await panel.page.get_by_role("button", name=f"Apply anyway {size}").click()
        assert await panel.host.until(1) == [("apply", size)]


async def test_keys_retune(panel: Panel) -> None:
    """Arrows step, PageUp and PageDown go by powers of two, Home and End to the ends, Enter writes, Escape gives up."""
    slider = panel.slider("Throughput")
    await slider.focus()
    for key, expected in (
        ("ArrowRight", 17),
        ("ArrowUp", 18),
        ("ArrowLeft", 17),
        ("PageDown", 16),
        ("PageUp", 32),
        ("PageUp", 64),
        ("ArrowDown", 63),
        ("Home", 1),
        ("PageUp", 2),
    ):
        await slider.press(key)
        assert await panel.previewed() == expected, key
    await slider.press("End")
    largest = await panel.previewed()
    prediction = await panel.host.predict(largest)
    beyond = await panel.host.predict(largest + 1)
    assert prediction is not None
    assert prediction.fits is not False
    assert beyond is not None
    assert beyond.fits is False
    panel.asked.clear()
    await slider.press("Escape")
    assert await panel.previewed() == 16
    await slider.press("Enter")
    await slider.press("ArrowRight")
    await slider.press("Enter")
    assert await panel.host.until(1) == [("apply", 17)]


async def test_a_finger_retunes() -> None:
    """A touch that moves sideways pulls the bar."""
    async with opened(has_touch=True, viewport={"width": 400, "height": 800}) as panel:
        handle = await panel.slider("Throughput").locator(".bar-handle").bounding_box()
        x, y = handle["x"] + 4, handle["y"] + 10
        client = await panel.page.context.new_cdp_session(panel.page)

        async def touch(kind: str, *points: tuple[float, float]) -> None:
            await client.send(
                "Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": px, "y": py} for px, py in points]}
            )

        await touch("touchStart", (x, y))
        for step in range(1, 8):
            await touch("touchMove", (x + 7 * step, y))
        await touch("touchEnd")
        ((wish, size),) = await panel.host.until(1)
        assert wish == "apply"
        assert size > 16


async def test_a_batch_size_can_be_typed(panel: Panel) -> None:
    """What is typed is predicted at once, or by the server where the page can't; what is no number is marked."""
    field = panel.page.get_by_label("Batch size", exact=True)
    await field.fill("24")
    assert "batch size 24" in await panel.slider("Throughput").get_attribute("aria-valuetext")
    await field.fill("500")
    assert await panel.host.until(1) == [("predict", 500)]
    await playwright.expect(panel.slider("Throughput")).to_have_attribute(
        "aria-valuetext", re.compile("batch size 500, predicted")
    )
    await field.fill("x")
    assert await field.get_attribute("aria-invalid") == "true"
    await field.press("Escape")
    assert await panel.previewed() == 16


async def test_suggestions_preview(panel: Panel) -> None:
    """A suggested batch size is shown before it is written."""
    await panel.page.get_by_role("button", name="largest that fits").click()
    size = await panel.previewed()
    assert panel.asked == []
    await panel.page.get_by_role("button", name=f"Apply {size}").click()
    assert await panel.host.until(1) == [("apply", size)]


async def test_a_refused_edit_says_why(panel: Panel) -> None:
    """The reason is shown, and the source's own batch size again."""
    panel.host.refusal = "The file has changed meanwhile."
    await panel.pull("Throughput", 60)
    await playwright.expect(panel.page.get_by_text("The file has changed meanwhile.")).to_be_visible()
    assert await panel.previewed() == 16


async def test_without_a_site_there_is_nothing_to_apply() -> None:
    """A batch size that can't be written can still be looked at, and the reason stands there."""
    async with opened(state_of(sites=(), no_site_reason="It comes from the command line.")) as panel:
        await playwright.expect(panel.page.get_by_text("It comes from the command line.")).to_be_visible()
        await panel.slider("Throughput").press("ArrowRight")
        await playwright.expect(panel.page.get_by_role("button", name="Apply 17")).to_be_disabled()
        await panel.slider("Throughput").press("Enter")
        assert panel.asked == []


async def test_without_a_model_bars_stand_still() -> None:
    """Bars show what was measured, can't be pulled, and a button asks for what is missing."""
    async with opened(state_of(model=None)) as panel:
        slider = panel.slider("Throughput")
        assert await slider.get_attribute("aria-disabled") == "true"
        box = await slider.bounding_box()
        await panel.page.mouse.move(box["x"] + 100, box["y"] + 10)
        await panel.page.mouse.down()
        await panel.page.mouse.move(box["x"] + 200, box["y"] + 10, steps=4)
        await panel.page.mouse.up()
        await slider.press("ArrowRight")
        assert await panel.previewed() == 16
        await panel.page.get_by_role("button", name="Measure other batch sizes").click()
        assert await panel.host.until(1) == [("predict", 32)]


async def test_an_undo_in_the_editor_is_followed(panel: Panel) -> None:
    """The page shows the source's batch size, whoever changed it."""
    await panel.pull("Throughput", 60)
    await panel.host.until(1)
    panel.host.change(batch_size=16, state=State.READY, outdated=False)
    await playwright.expect(panel.page.get_by_text("Up to date")).to_be_visible()
    assert await panel.previewed() == 16
    assert "measured" in await panel.slider("Throughput").get_attribute("aria-valuetext")


# -- drilling ----------------------------------------------------------------------------------------------------------


async def test_a_click_opens_the_line(panel: Panel) -> None:
    """One click on a block shows its line in the editor, and its cost below."""
    await panel.page.mouse.click(*await panel.point("time-icicle", 2))
    assert await panel.host.until(1) == [("reveal", "model/block.py", 5)]
    details = panel.page.locator(".time .details")
    await playwright.expect(details).to_contain_text("return self.linear(x)")
    await playwright.expect(details).to_contain_text("forward")
    await details.get_by_role("button", name="model/block.py:5").click()
    assert (await panel.host.until(2))[1] == ("reveal", "model/block.py", 5)


async def test_a_double_click_zooms_and_there_are_ways_back(panel: Panel) -> None:
    """Double-click fills the view with a block; Backspace, Escape, the button, a crumb and a block above lead back."""
    page = panel.page

    async def zoom_in() -> None:
        await page.mouse.dblclick(*await panel.point("time-icicle", 1))
        assert await panel.crumbs() == ["iteration", "train.py:10", "net.py:20"]

    await zoom_in()
    await page.keyboard.press("Backspace")
    assert await panel.crumbs() == ["iteration"]
    await zoom_in()
    await page.keyboard.press("Escape")
    assert await panel.crumbs() == ["iteration"]
    await zoom_in()
    await page.locator(".time").get_by_role("button", name="Back").click()
    assert await panel.crumbs() == ["iteration"]
    await zoom_in()
    await page.locator(".time").get_by_role("button", name="train.py:10").click()
    assert await panel.crumbs() == ["iteration", "train.py:10"]
    box = await page.locator("#time-icicle").bounding_box()
    await page.mouse.click(box["x"] + box["width"] / 2, box["y"] + ROW_PX / 2)
    assert await panel.crumbs() == ["iteration"]


async def test_keys_drill(panel: Panel) -> None:
    """Arrows choose a block, Enter zooms, Ctrl+Enter opens, and what is chosen is told to assistive technology."""
    tree = panel.page.get_by_role("tree", name="Run time by line")
    await tree.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):
        await tree.press(key)
    chosen = tree.get_by_role("treeitem", selected=True)
    await playwright.expect(chosen).to_contain_text("net.py:20")
    assert await tree.get_attribute("aria-activedescendant") == await chosen.get_attribute("id")
    await tree.press("ArrowRight")
    await playwright.expect(chosen).to_contain_text("net.py:21")
    await tree.press("Control+Enter")
    assert await panel.host.until(1) == [("reveal", "model/net.py", 21)]
    await tree.press("Enter")
    assert await panel.crumbs() == ["iteration", "train.py:10", "net.py:21"]
    await tree.press("ArrowUp")
    await playwright.expect(chosen).to_contain_text("train.py:10")


async def test_memory_drills_into_parameters_and_lines(panel: Panel) -> None:
    """Weights open by the names of modules, activations by lines."""
    tree = panel.page.get_by_role("tree", name="Memory at the peak")
    await tree.focus()
    for key in ("ArrowDown", "ArrowDown", "Home", "ArrowDown"):
        await tree.press(key)
    chosen = tree.get_by_role("treeitem", selected=True)
    await playwright.expect(chosen).to_contain_text("activations: 560 MiB")
    for key in ("ArrowLeft", "ArrowLeft", "ArrowLeft"):
        await tree.press(key)
    await playwright.expect(chosen).to_contain_text("weights: 100 MiB")
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):
        await tree.press(key)
    await playwright.expect(chosen).to_contain_text("blocks.0.first: 10 MiB")


async def test_a_line_lights_up_in_both_icicles(panel: Panel) -> None:
    """The pointer over a block outlines the line's other blocks, here and in the other icicle."""
    page = panel.page
    time, memory = await panel.picture("time-icicle"), await panel.picture("memory-icicle")
    await page.mouse.move(*await panel.point("time-icicle", 2))
    assert await panel.picture("time-icicle") != time
    assert await panel.picture("memory-icicle") != memory
    await page.mouse.move(1, 1)
    assert await panel.picture("memory-icicle") == memory
    # A line that saves nothing has no block in the memory icicle.
    assert await panel.picture("time-icicle") == time


async def test_the_editors_cursor_lights_up(panel: Panel) -> None:
    """The line where the editor's cursor is stands out until the cursor leaves it."""
    before = await panel.picture("time-icicle")
    panel.server.highlight("model/block.py", 5)
    await eventually(lambda: panel.picture("time-icicle"), lambda now: now != before)
    panel.server.highlight(None, None)
    await eventually(lambda: panel.picture("time-icicle"), lambda now: now == before)


async def test_search_finds_lines_and_parameters(panel: Panel) -> None:
    """`/` goes to the search, which tells the share of what it finds, dims the rest, and Enter chooses a match."""
    page = panel.page
    before = await panel.picture("time-icicle")
    await page.locator("h1").click()
    await page.keyboard.press("/")
    await page.keyboard.type("Block.forward")
    own = [node for node in panel.host.current.profile.tree if node.function == "Block.forward"]
    share = sum(n.self_forward_ms + n.self_backward_ms for n in own) / panel.host.current.profile.iteration.run_time_ms
    await playwright.expect(page.locator("output")).to_contain_text(f"{share:.0%}".replace("%", " %") + " of time")
    assert await panel.picture("time-icicle") != before
    await page.keyboard.press("Enter")
    chosen = page.get_by_role("tree", name="Run time by line").get_by_role("treeitem", selected=True)
    await playwright.expect(chosen).to_contain_text("block.py:5")
    await page.get_by_label("Find a line").fill("blocks.3")
    await playwright.expect(page.locator("output")).to_contain_text("0 % of time, 3.8 % of memory")
    await page.get_by_label("Find a line").fill("nothing like it")
    await playwright.expect(page.locator("output")).to_have_text("nothing found")
    await page.get_by_label("Find a line").press("Escape")
    await playwright.expect(page.locator("output")).to_have_text("")


async def test_a_new_profile_keeps_the_view(panel: Panel) -> None:
    """Profiling again does not throw the user back to the top."""
    await panel.page.mouse.dblclick(*await panel.point("time-icicle", 1))
    assert len(await panel.crumbs()) == 3
    panel.host.change(profile=profile_of(small_tree(), batch_size=17), batch_size=17)
    await playwright.expect(panel.page.get_by_text("batch size 17,")).to_be_visible()
    assert await panel.crumbs() == ["iteration", "train.py:10", "net.py:20"]


async def test_ten_thousand_nodes() -> None:
    """A large program is drawn, and drilled into to its last line."""
    profile = profile_of(large_tree(10_000))
    async with opened(state_of(profile=profile, texts={})) as panel:
        tree = panel.page.get_by_role("tree", name="Run time by line")
        await tree.focus()
        chosen = tree.get_by_role("treeitem", selected=True)
        await tree.press("Home")
        depth = 0
        while True:
            await tree.press("ArrowDown")
            level = int(await chosen.get_attribute("aria-level"))
            if level == depth:
                break
            depth = level
            await tree.press("Enter")
        assert depth >= 9
        assert len(await panel.crumbs()) == depth
        for _ in range(depth):
            await panel.page.keyboard.press("Backspace")
        assert await panel.crumbs() == ["iteration"]
        await panel.page.get_by_label("Find a line").fill("module_7.py:")
        await playwright.expect(panel.page.locator("output")).to_contain_text("of time")


# -- what else it shows ------------------------------------------------------------------------------------------------


async def test_a_run_shows_its_progress_and_can_be_cancelled(panel: Panel) -> None:
    """While a run is under way the page says what it does, and the same button ends it."""
    await panel.page.get_by_role("button", name="Profile again").click()
    await playwright.expect(panel.page.get_by_text("Profiling: timing iteration 3")).to_be_visible()
    await playwright.expect(panel.page.get_by_role("progressbar")).to_be_visible()
    await panel.page.locator(".top").get_by_role("button", name="Cancel").click()
    await playwright.expect(panel.page.get_by_text("Up to date")).to_be_visible()
    assert panel.asked == [("profile",), ("cancel",)]


async def test_news_of_a_run_leave_the_focus_alone(panel: Panel) -> None:
    """Whoever walks through the page by keyboard is not thrown back by each report of progress."""
    button = panel.page.locator(".card.advice").get_by_role("button", name="train.py:8")
    await button.focus()
    panel.host.change(state=State.RUNNING, progress="tracing lines", fraction=0.5)
    await playwright.expect(panel.page.get_by_text("Profiling: tracing lines")).to_be_visible()
    await playwright.expect(button).to_be_focused()


async def test_a_new_model_renews_a_preview(panel: Panel) -> None:
    """A preview shows what is known now, also when more has been measured meanwhile."""
    await panel.slider("Throughput").press("PageUp")
    before = await panel.slider("Throughput").get_attribute("aria-valuetext")
    panel.host.change(model=model_of(2, 8, 16, 64))
    await playwright.expect(panel.slider("Throughput")).not_to_have_attribute("aria-valuetext", before)
    assert await panel.previewed() == 32


async def test_a_failure_leads_to_its_line(panel: Panel) -> None:
    """The message stands on top with a way to the line; the last results stay."""
    panel.host.change(state=State.FAILED, failure=PanelFailure(message="It ran out of data.", path="train.py", line=10))
    alert = panel.page.get_by_role("alert").filter(has_text="It ran out of data.")
    await alert.get_by_role("button", name="train.py:10").click()
    assert await panel.host.until(1) == [("reveal", "train.py", 10)]
    await playwright.expect(panel.slider("Throughput")).to_be_visible()


async def test_nothing_profiled_yet() -> None:
    """An empty project shows what to do, and nothing that is broken."""
    async with opened(PanelState(project="empty", workload="train.py")) as panel:
        await playwright.expect(panel.page.get_by_text("Not profiled yet")).to_be_visible()
        await panel.page.get_by_role("button", name="Profile").click()
        assert await panel.host.until(1) == [("profile",)]
        panel.host.change(profile=profile_of(small_tree()), state=State.READY, batch_size=16)
        await playwright.expect(panel.slider("Throughput")).to_be_visible()


async def test_history_and_advice(panel: Panel) -> None:
    """What was measured is set against what was predicted; advice leads to its line."""
    page = panel.page
    await playwright.expect(page.get_by_text("batch size 8 → 16, throughput +43 %")).to_be_visible()
    newest = page.get_by_role("row").nth(1)
    await playwright.expect(newest).to_contain_text("16")
    await page.locator(".card.advice").get_by_role("button", name="train.py:8").click()
    assert await panel.host.until(1) == [("reveal", "train.py", 8)]


async def test_drawings_can_be_read(panel: Panel) -> None:
    """The drawings say in words what they show, and tell a point's numbers under the pointer."""
    page = panel.page
    name = await page.locator("#rate-plot").get_attribute("aria-label")
    assert "16: 228 samples/s" in name
    assert "peaks at 940 MiB" in await page.locator("#timeline").get_attribute("aria-label")
    await page.locator("#peak-plot").hover()
    await playwright.expect(page.locator(".card.peak .readout")).to_contain_text("batch size")


async def test_says_when_its_server_has_gone(panel: Panel) -> None:
    """A page whose server has closed says so instead of looking alive."""
    await panel.server.close()
    await playwright.expect(panel.page.get_by_role("alert").filter(has_text="has closed")).to_be_visible()


@pytest.mark.parametrize("width", [400, 900, 1440])
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_readable_at_any_width_in_both_themes(width: int, theme: Any) -> None:
    """Nothing sticks out sideways, every control has a name, and text stands out from its background by 4.5 to 1."""
    async with opened(viewport={"width": width, "height": 900}, color_scheme=theme) as panel:
        page = panel.page
        await panel.slider("Throughput").press("ArrowRight")
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        unnamed = await page.evaluate(
            """() => [...document.querySelectorAll("button, input, [role=slider], [role=tree], [role=img]")]
              .filter((element) => element.checkVisibility())
              .filter((element) => !(element.textContent.trim() || element.labels?.length
                || element.getAttribute("aria-label") || element.getAttribute("aria-labelledby")))
              .map((element) => element.outerHTML.slice(0, 90))"""
        )
        assert unnamed == []
        assert await page.evaluate(WEAK_TEXT) == []
        if folder := os.environ.get("SCREENSHOTS"):
            await page.screenshot(path=Path(folder) / f"panel-{width}-{theme}.png", full_page=True)


WEAK_TEXT = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const luminance = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const background = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if (colour[3] > 0.99) return colour;
    }
    return [255, 255, 255, 1];
  };
  const weak = [];
  for (const element of document.querySelectorAll("body *")) {
    const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!text || element.disabled || element.closest(".visually-hidden, noscript")) continue;
    if (!element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const ink = element instanceof SVGElement ? style.fill : style.color;
    const ratio = contrast(rgba(ink), background(element));
    if (ratio < 4.5) weak.push(`${element.textContent.slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  const probe = document.body.appendChild(document.createElement("i"));
  const named = (name) => { probe.style.color = `var(${name})`; return rgba(getComputedStyle(probe).color); };
  for (const block of ["--time-cool", "--time-hot", "--memory-cool", "--memory-hot", "--block-neutral"]) {
    const ratio = contrast(named("--block-text"), named(block));
    if (ratio < 4.5) weak.push(`${block}: ${ratio.toFixed(2)}`);
  }
  probe.remove();
  return weak;
}"""


# -- other pages -------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def other_page(text: str) -> AsyncIterator[str]:
    """The address of a page on another origin: same machine, another port."""

    async def serve(request: web.Request) -> web.Response:
        return web.Response(text=text if request.path == "/" else "", content_type="text/html")

    app = web.Application()
    app.router.add_get("/{path:.*}", serve)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


ATTACK = """<!doctype html><body><script>
const attempt = async (name, act) => { try { return [name, await act()]; } catch (error) { return [name, null]; } };
const socket = (url) => new Promise((settle) => {
  const opened = new WebSocket(url);
  opened.onopen = () => { opened.send('{"id":1,"method":"apply","batchSize":99}'); settle("open"); };
  opened.onerror = () => settle(null);
});
const load = (tag, url) => new Promise((settle) => {
  const element = document.createElement(tag);
  element.onload = () => settle("loaded");
  element.onerror = () => settle(null);
  element.src = url;
  document.body.append(element);
});
window.attack = async (origin, secret) => Object.fromEntries(await Promise.all([
  attempt("read", async () => (await fetch(origin + secret)).text()),
  attempt("blind", async () => (await (await fetch(origin + secret, { mode: "no-cors" })).text()) || null),
  attempt("post", async () => (await fetch(origin + secret, { method: "POST", body: "{}" })).text()),
  attempt("socket", () => socket(origin.replace("http", "ws") + secret + "socket")),
  attempt("script", () => load("script", origin + secret + "panel.js")),
  attempt("image", () => load("img", origin + secret + "icon.svg")),
]));
</script></body>"""


@pytest.mark.parametrize("knows_the_secret", [False, True])
async def test_a_hostile_page_gets_nothing(panel: Panel, knows_the_secret: bool) -> None:
    """A page of another origin can neither read nor do anything, not even one that has learnt the address."""
    address = await panel.server.start()
    origin, secret = "/".join(address.split("/")[:3]) + "/", address.split("/")[3] + "/"
    async with other_page(ATTACK) as url, browsing() as hostile:
        await hostile.goto(url)
        found = await hostile.evaluate(
            "([origin, secret]) => attack(origin, secret)", [origin, secret if knows_the_secret else "x/"]
        )
        assert set(found.values()) == {None}, found
    assert panel.asked == []
    assert panel.server.open_pages == 1


async def test_a_hostile_page_can_not_frame_it(panel: Panel) -> None:
    """Nobody can lay the page under a click of theirs."""
    frame = f'<!doctype html><iframe src="{await panel.server.start()}"></iframe>'
    async with other_page(frame) as url, browsing() as hostile:
        await hostile.goto(url)
        await eventually(lambda: asyncio.sleep(0, hostile.faults), lambda faults: bool(faults))
        assert any("frame-ancestors" in fault for fault in hostile.faults), hostile.faults
    assert panel.server.open_pages == 1


async def test_an_editors_frame_shows_it_in_the_editors_colours() -> None:
    """A page that the host allows embeds it, and its colours are taken over; nothing but colours is."""
    host = Host(state_of())
    async with other_page("<!doctype html><iframe width='800' height='600'></iframe>") as url:
        server = PanelServer(host, embedders=("'self'", url.rstrip("/")))
        try:
            async with browsing(color_scheme="light") as page:
                await page.goto(url)
                await page.evaluate(
                    "(address) => { document.querySelector('iframe').src = address; }", await server.start()
                )
                frame = page.frame_locator("iframe")
                await frame.get_by_role("slider", name="Throughput").wait_for()
                await page.evaluate(
                    """() => frames[0].postMessage({type: "skyline.theme", kind: "dark", variables: {
                      "--vscode-editor-background": "rgb(1, 2, 3)", "--vscode-foreground": "url(http://evil.example/)",
                      "--surface": "red"}}, "*")"""
                )
                root = frame.locator("html")
                await playwright.expect(root).to_have_css("background-color", "rgb(1, 2, 3)")
                await playwright.expect(root).to_have_attribute("data-theme", "dark")
                assert "evil" not in (await root.get_attribute("style"))
                assert "red" not in (await root.get_attribute("style"))
                assert page.faults == []
        finally:
            await server.close()


async def eventually(look: Any, right: Any) -> Any:
    """Look again until it is right, at most as long as a page may take."""

    async def poll() -> Any:
        while not right(found := await look()):
            await asyncio.sleep(0.02)
        return found

    return await asyncio.wait_for(poll(), 20)
