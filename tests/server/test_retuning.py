"""Wishes, previews, the history and the interactive page, through commands."""

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from pygls.exceptions import JsonRpcException

from tests.server.conftest import StartEditor
from tests.server.editor import Editor


async def profiled(start_editor: StartEditor) -> tuple[Editor, str]:
    """An editor with the example profiled."""
    editor = await start_editor()
    uri = editor.open("train.py")
    await editor.command("skyline.profile", {"uri": uri})
    await editor.profiled(uri)
    return editor, uri


@pytest.mark.parametrize(
    ("goal", "value"),
    [("throughput", 10), ("memory", "80%"), ("memory", "2GiB"), ("maxThroughput", None), ("fit", None)],
)
async def test_a_wish_is_fulfilled_in_the_source(start_editor: StartEditor, goal: str, value: Any) -> None:
    """The batch size that the wish asks for is written, and the answer says why it is that one."""
    editor, uri = await profiled(start_editor)
    answer = await editor.command("skyline.retune", {"uri": uri, "goal": goal, "value": value})
    assert answer["reason"]
    assert answer["edit"]["applied"]
    assert f"batch_size={answer['batchSize']}" in editor.texts[uri].replace(" ", "")


async def test_a_wish_can_be_asked_without_an_edit(start_editor: StartEditor) -> None:
    """With `apply` false the source stays as it is."""
    editor, uri = await profiled(start_editor)
    before = editor.texts[uri]
    answer = await editor.command("skyline.retune", {"uri": uri, "goal": "fit", "apply": False})
    assert "edit" not in answer
    assert editor.texts[uri] == before


@pytest.mark.parametrize("arguments", [{}, {"goal": "speed"}, {"goal": "memory", "value": "lots"}])
async def test_a_senseless_wish_is_refused(start_editor: StartEditor, arguments: dict[str, Any]) -> None:
    """What can't be meant is answered with what to write."""
    editor, uri = await profiled(start_editor)
    with pytest.raises(JsonRpcException, match=r"skyline\.retune"):
        await editor.command("skyline.retune", {"uri": uri, **arguments})


async def test_a_preview_relabels_until_it_is_cleared(start_editor: StartEditor) -> None:
    """Hints are marked as predicted while another batch size is previewed."""
    editor, uri = await profiled(start_editor)
    measured = await editor.hints(uri)
    prediction = await editor.command("skyline.preview", {"uri": uri, "batchSize": 32})
    assert prediction["batchSize"] == 32
    previewed = await editor.hints(uri)
    assert all("pred" in text for text in previewed.values())
    assert previewed.keys() >= measured.keys()
    await editor.command("skyline.clearPreview", {"uri": uri})
    assert await editor.hints(uri) == measured


async def test_a_prediction_from_what_is_known_measures_nothing(start_editor: StartEditor) -> None:
    """With `measure` false there is an answer at once, or the word that nothing is known."""
    editor, uri = await profiled(start_editor)
    runs = len(editor.runs())
    assert await editor.command("skyline.predict", {"uri": uri, "batchSize": 32, "measure": False}) == {"known": False}
    assert len(editor.runs()) == runs
    await editor.command("skyline.predict", {"uri": uri, "batchSize": 32})
    runs = len(editor.runs())
    known = await editor.command("skyline.predict", {"uri": uri, "batchSize": 48, "measure": False})
    assert known["known"]
    assert known["runTimeMs"]["low"] <= known["runTimeMs"]["value"] <= known["runTimeMs"]["high"]
    assert len(editor.runs()) == runs


async def test_costs_and_history_are_told_as_data(start_editor: StartEditor) -> None:
    """Clients that draw their own marks get each line's share; past profiles are kept."""
    editor, uri = await profiled(start_editor)
    costs = await editor.command("skyline.costs", {"uri": uri})
    assert {row["line"] for row in costs} >= set(await editor.hints(uri))
    assert all(0 <= row["share"] <= 1.01 for row in costs)
    (row,) = await editor.command("skyline.history", {"uri": uri})
    assert row["batchSize"] == 16
    assert row["predicted"] is None


async def test_the_page_is_served_on_loopback_only_to_who_knows_its_address(start_editor: StartEditor) -> None:
    """The address is the user's own machine's and holds a secret; it ends with the server."""
    editor, uri = await profiled(start_editor)
    url = (await editor.command("skyline.openPanel", {"uri": uri, "show": False}))["url"]
    assert url.startswith("http://127.0.0.1:")

    def status(address: str) -> int:
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    assert await asyncio.to_thread(status, url) == 200
    assert await asyncio.to_thread(status, url.rstrip("/")[:-4] + "xxxx/") in (403, 404)
    assert (await editor.command("skyline.openPanel", {"uri": uri, "show": False}))["url"] == url


async def test_the_page_shows_the_profile_and_edits_through_the_editor(start_editor: StartEditor) -> None:
    """A wish on the page becomes an edit of the editor's document, and the page is told."""
    import aiohttp

    editor, uri = await profiled(start_editor)
    url = (await editor.command("skyline.openPanel", {"uri": uri, "show": False}))["url"]
    origin = "/".join(url.split("/")[:3])
    async with aiohttp.ClientSession() as client, client.ws_connect(url + "socket", headers={"Origin": origin}) as page:
        first = json.loads((await page.receive(timeout=30)).data)
        assert first["type"] == "profile"
        assert first["profile"]["batchSize"] == 16
        await page.send_str(json.dumps({"method": "apply", "id": 1, "batchSize": 24}))
        await editor.until(lambda: "batch_size=24" in editor.texts[uri].replace(" ", ""))
