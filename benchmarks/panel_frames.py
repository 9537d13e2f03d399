"""How smoothly the panel draws 10,000 nodes in a real Chromium: frame times while zooming, searching and pulling.

    make test-panel                             # once, for the browser's driver
    .venv/bin/python benchmarks/panel_frames.py [NODES]

A display that refreshes 60 times a second leaves 16.7 ms a frame. Without a browser or its driver it says so and ends.
"""

import asyncio
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from skyline_lsp.panel import wire
from skyline_lsp.panel.server import PanelServer
from tests.panel.building import Host, large_tree, profile_of, state_of

START = """() => {
  window.frames_ms = [];
  window.counting = true;
  let last = performance.now();
  const next = () => {
    const now = performance.now();
    window.frames_ms.push(now - last);
    last = now;
    if (window.counting) requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
}"""
STOP = "() => { window.counting = false; return window.frames_ms; }"
SEARCH = """async () => {
  const field = document.getElementById("search");
  const started = performance.now();
  field.value = "module_7";
  field.dispatchEvent(new Event("input"));
  await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
  return performance.now() - started;
}"""


async def main(nodes: int) -> str | None:
    """Measure and print; the reason where nothing can be measured."""
    try:
        from playwright.async_api import async_playwright

        from tests.panel.test_page import FLAGS, chromium

        browser_path = chromium()
    except ImportError:
        return "the browser's driver is not installed (make test-panel does)"
    except AssertionError as missing:
        return str(missing)
    profile = profile_of(large_tree(nodes))
    started = time.perf_counter()
    text = wire.encode(wire.profile_message(profile, {}))
    print(f"{nodes} nodes: {len(text) / 2**20:.2f} MiB of JSON in {1000 * (time.perf_counter() - started):.0f} ms")
    host = Host(state_of(profile=profile, texts={}))
    server = PanelServer(host)
    host.changed = server.notify
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=browser_path, args=list(FLAGS))
        page = await (await browser.new_context(viewport={"width": 1440, "height": 900})).new_page()
        started = time.perf_counter()
        await page.goto(await server.start())
        await page.get_by_role("slider", name="Throughput").wait_for()
        print(f"open to shown: {time.perf_counter() - started:.2f} s")
        await show("zooming in and out", page, zoom)
        await show("pointer over blocks", page, hover)
        await show("pulling a bar", page, pull)
        print(f"search, to its second frame: {await page.evaluate(SEARCH):.0f} ms")
        await browser.close()
    await server.close()
    return None


async def show(name: str, page: Any, act: Any) -> None:
    """Print the frame times of an activity."""
    await page.evaluate(START)
    await act(page)
    frames = sorted((await page.evaluate(STOP))[1:])
    late = sum(frame > 34 for frame in frames)
    print(
        f"{name}: {len(frames)} frames, median {statistics.median(frames):.1f} ms, "
        f"95th percentile {frames[int(0.95 * len(frames))]:.1f} ms, longest {frames[-1]:.1f} ms, "
        f"{late} later than two refreshes"
    )


async def zoom(page: Any) -> None:
    """Four levels in by double click, and out again."""
    box = await page.locator("#time-icicle").bounding_box()
    for level in range(4):
        await page.mouse.dblclick(box["x"] + 120 + 20 * level, box["y"] + 24 * (level + 1) + 10)
        await page.wait_for_timeout(350)
    for _ in range(4):
        await page.keyboard.press("Backspace")
        await page.wait_for_timeout(350)


async def hover(page: Any) -> None:
    """Along the blocks of two rows."""
    box = await page.locator("#time-icicle").bounding_box()
    for row in (3, 6):
        for step in range(60):
            await page.mouse.move(box["x"] + 10 * step + 5, box["y"] + 24 * row + 10)


async def pull(page: Any) -> None:
    """The memory bar to the right, and let go without an edit."""
    handle = await page.locator("#memory .bar-handle").bounding_box()
    x, y = handle["x"] + 4, handle["y"] + 15
    await page.mouse.move(x, y)
    await page.mouse.down()
    for step in range(80):
        await page.mouse.move(x + 3 * step, y)
    await page.keyboard.press("Escape")
    await page.mouse.up()


if __name__ == "__main__":
    problem = asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
    if problem:
        print(f"not measured: {problem}")
