"""The page's server: who may talk to it, what it sends, what it passes on, and that it goes away."""

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from skyline_lsp.features import State
from skyline_lsp.panel import Advice, PanelFailure, PanelState, line_texts
from skyline_lsp.panel.server import PanelServer
from tests.panel.building import CAPACITY, Host, model_of, profile_of, small_tree, state_of

ROOT = Path(__file__).parents[2]


class Panel:
    """A started server, its host and a client without cookies."""

    def __init__(self, host: Host, server: PanelServer, address: URL, client: aiohttp.ClientSession) -> None:
        self.host = host
        self.server = server
        self.address = address
        self.client = client

    @property
    def origin(self) -> str:
        """The page's own origin."""
        return str(self.address.origin())

    @contextlib.asynccontextmanager
    async def page(self, **headers: str) -> AsyncIterator["Page"]:
        """A connected page."""
        headers = {"Origin": self.origin, **headers}
        async with self.client.ws_connect(self.address / "socket", headers=headers, max_msg_size=0) as socket:
            yield Page(socket)


class Page:
    """What a page does with its web socket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket

    async def next(self, kind: str) -> dict[str, Any]:
        """The next message of a kind; others are passed over."""
        while True:
            message = await asyncio.wait_for(self.socket.receive(), 20)
            assert message.type is aiohttp.WSMsgType.TEXT, message
            found: dict[str, Any] = json.loads(message.data)
            if found["type"] == kind:
                return found

    async def ask(self, **wish: Any) -> dict[str, Any]:
        """The reply to a wish."""
        await self.socket.send_json({"id": 1, **wish})
        return await self.next("reply")


@pytest.fixture
async def panel() -> AsyncIterator[Panel]:
    host = Host(state_of())
    server = PanelServer(host)
    host.changed = server.notify
    address = URL(await server.start(), encoded=True)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as client:
        yield Panel(host, server, address, client)
    await server.close()


# -- who may talk to it ------------------------------------------------------------------------------------------------


async def test_listens_on_loopback_at_a_secret_address(panel: Panel) -> None:
    """The address is on 127.0.0.1, and its secret is long, and another one for each server."""
    other = PanelServer(panel.host)
    try:
        address = URL(await other.start(), encoded=True)
        assert panel.address.host == address.host == "127.0.0.1"
        assert len(panel.address.parts[1]) >= 40
        assert panel.address.parts[1] != address.parts[1]
        assert await other.start() == str(address), "a second start tells the same address"
    finally:
        await other.close()


@pytest.mark.parametrize("name", ["", "panel.js", "panel.css", "icon.svg", "THIRD_PARTY.md"])
async def test_serves_the_page_with_the_secret_only(panel: Panel, name: str) -> None:
    """Every file is served below the secret, and none without it, with another one, or beside it."""
    async with panel.client.get(panel.address / name if name else panel.address) as answer:
        assert answer.status == 200
        check_headers(answer.headers)
    for path in (
        f"/{name}",
        f"/wrong/{name}",
        f"/{panel.address.parts[1][:-1]}/{name}",
        f"/?token={panel.address.parts[1]}",
    ):
        async with panel.client.get(panel.address.origin().join(URL(path))) as answer:
            assert answer.status == 403, path
            check_headers(answer.headers)
            assert panel.address.parts[1] not in await answer.text()


@pytest.mark.parametrize(
    "path", ["nothing", "../server.py", "%2e%2e/server.py", "..%2fserver.py", "panel.js/", "sub/panel.js", "socket"]
)
async def test_serves_nothing_but_the_page(panel: Panel, path: str) -> None:
    """What is no part of the page is not there, whatever the path."""
    async with panel.client.get(URL(f"{panel.address}{path}", encoded=True)) as answer:
        assert answer.status in (403, 404)
        assert b"import" not in await answer.read()


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost", "evil.example:{port}", ""])
async def test_refuses_other_host_names(panel: Panel, host: str) -> None:
    """A page whose name was rebound to 127.0.0.1 sends its own name, and is refused."""
    name = host.format(port=panel.address.port)
    async with panel.client.get(panel.address, headers={"Host": name}) as answer:
        assert answer.status == 403


async def test_answers_to_localhost(panel: Panel) -> None:
    """An editor that forwards the port may call the machine by its other loopback name."""
    name = f"localhost:{panel.address.port}"
    async with panel.client.get(panel.address, headers={"Host": name}) as answer:
        assert answer.status == 200
    async with panel.page(Host=name, Origin=f"http://{name}") as page:
        assert (await page.next("state"))["project"] == "project"


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}", None]
)
async def test_refuses_web_sockets_from_other_pages(panel: Panel, origin: str | None) -> None:
    """Even with the secret, a web socket that another page opens, or that names no page, is refused."""
    headers = {} if origin is None else {"Origin": origin.format(port=panel.address.port)}
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await panel.client.ws_connect(panel.address / "socket", headers=headers)
    assert refused.value.status == 403
    assert panel.server.open_pages == 0


async def test_refuses_a_web_socket_without_the_secret(panel: Panel) -> None:
    """The page's own origin is no substitute for the secret."""
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await panel.client.ws_connect(panel.address.origin() / "wrong" / "socket", headers={"Origin": panel.origin})
    assert refused.value.status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    ],
)
async def test_refuses_what_other_pages_fetch(panel: Panel, headers: dict[str, str]) -> None:
    """Another page may open this one, but not load its parts as scripts, images or data."""
    async with panel.client.get(panel.address / "panel.js", headers=headers) as answer:
        assert answer.status == 403


async def test_an_editor_may_open_it_in_a_frame(panel: Panel) -> None:
    """A frame in VS Code's webview is a navigation from another site: let in, and limited to such frames."""
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
    async with panel.client.get(panel.address, headers=headers) as answer:
        assert answer.status == 200
        assert policy_of(answer.headers)["frame-ancestors"] == ["'self'", "vscode-webview:", "vscode-file:"]


async def test_the_host_says_who_else_may_embed_it() -> None:
    """Editors in a browser have addresses of their own, which the host knows."""
    server = PanelServer(Host(state_of()), embedders=("'self'", "https://editor.example"))
    try:
        async with aiohttp.ClientSession() as client, client.get(await server.start()) as answer:
            assert policy_of(answer.headers)["frame-ancestors"] == ["'self'", "https://editor.example"]
    finally:
        await server.close()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
async def test_nothing_is_changed_by_a_request(panel: Panel, method: str) -> None:
    """Wishes come by the web socket alone: no form or fetch can edit a file, even from the page's own origin."""
    async with panel.client.request(method, panel.address, data=b"x", headers={"Origin": panel.origin}) as answer:
        assert answer.status == 405
    assert panel.host.asked == []


def policy_of(headers: Any) -> dict[str, list[str]]:
    """Directive of the Content-Security-Policy -> its sources."""
    found = {}
    for directive in headers["Content-Security-Policy"].split(";"):
        name, *sources = directive.split()
        found[name] = sources
    return found


def check_headers(headers: Any) -> None:
    """Nothing foreign runs or is loaded, nothing is kept, guessed or told."""
    policy = policy_of(headers)
    assert policy["default-src"] == ["'none'"]
    assert policy["script-src"] == policy["style-src"] == ["'self'"]
    assert policy["base-uri"] == policy["form-action"] == ["'none'"]
    assert all(source.startswith(("'self'", "ws://127.0.0.1:", "ws://localhost:")) for source in policy["connect-src"])
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "Set-Cookie" not in headers
    assert "Access-Control-Allow-Origin" not in headers


# -- what it sends -----------------------------------------------------------------------------------------------------


async def test_sends_the_whole_state_to_a_new_page(panel: Panel) -> None:
    """Profile, predictions and state come at once, the state last, since it completes them."""
    async with panel.page() as page:
        kinds = [json.loads((await page.socket.receive()).data)["type"] for _ in range(3)]
    assert kinds == ["profile", "predictions", "state"]


async def test_the_profile_keeps_its_sums(panel: Panel) -> None:
    """What the page adds up is the iteration, and its peak."""
    async with panel.page() as page:
        profile = (await page.next("profile"))["profile"]
    tree = profile["tree"]
    own = sum(tree["forwardMs"]) + sum(tree["backwardMs"])
    assert own + profile["untrackedMs"] == pytest.approx(profile["iteration"]["runTimeMs"], rel=1e-5)
    assert sum(profile["memory"].values()) == profile["iteration"]["peakBytes"]
    named = [(tree["names"][path], line) for path, line in zip(tree["path"], tree["line"], strict=True)]
    assert named[2] == ("model/block.py", 5)
    assert tree["names"][tree["text"][2]] == "return self.linear(x)"
    assert tree["text"][0] == -1, "a line whose text is not known has none"


def test_texts_of_lines_are_taken_where_there_are_some() -> None:
    """A file that can't be read, and a line that is beyond its file's end, have no text."""
    sources = {"model/block.py": ["", "", "", "", "    return self.linear(x)  ", "    y"], "train.py": ["import torch"]}
    texts = line_texts(profile_of(small_tree()), sources.get)
    assert texts == {"model/block.py": {5: "return self.linear(x)", 6: "y"}}


async def test_the_predictions_are_those_of_the_model(panel: Panel) -> None:
    """Every small batch size is there up to four times the largest sample, as `predict` has it."""
    async with panel.page() as page:
        table = (await page.next("predictions"))["predictions"]
    assert table["batchSizes"] == list(range(1, 129))
    assert table["capacityBytes"] == CAPACITY
    for size in (4, 20, 96):
        row = size - 1
        expected = await panel.host.predict(size)
        assert expected is not None
        assert table["runTimeMs"]["value"][row] == pytest.approx(expected.run_time_ms.value, rel=1e-6)
        assert table["samplesPerSecond"]["low"][row] == pytest.approx(expected.samples_per_second.low, rel=1e-6)
        assert expected.peak_bytes is not None
        assert table["peakBytes"]["high"][row] == pytest.approx(expected.peak_bytes.high, rel=1e-6)
        assert table["fits"][row] is expected.fits
        assert table["measured"][row] is expected.measured
    suggested = {wish["name"]: wish["batchSize"] for wish in table["suggestions"]}
    assert 1 < suggested["95 % of the best throughput"] <= 128
    assert table["fits"][suggested["largest that fits"] - 1] is True


async def test_sends_what_has_changed_and_nothing_else(panel: Panel) -> None:
    """A change of state does not send the profile again; a new profile comes with its state."""
    async with panel.page() as page:
        await page.next("state")
        panel.host.change(state=State.RUNNING, progress="tracing lines", fraction=0.5)
        message = json.loads((await page.socket.receive()).data)
        assert (message["type"], message["state"], message["progress"]) == ("state", "running", "tracing lines")
        panel.host.change(state=State.READY, profile=profile_of(small_tree(), batch_size=8), batch_size=8)
        assert (await page.next("profile"))["profile"]["batchSize"] == 8
        assert (await page.next("state"))["batchSize"] == 8


async def test_a_notice_without_news_sends_nothing(panel: Panel) -> None:
    """`notify` may be called as often as the host likes."""
    async with panel.page() as page:
        await page.next("state")
        panel.server.notify()
        panel.server.notify()
        panel.server.highlight("train.py", 10)
        message = json.loads((await page.socket.receive()).data)
        assert message == {"type": "highlight", "path": "train.py", "line": 10}


async def test_every_page_hears_of_a_change(panel: Panel) -> None:
    """Two windows on one server agree."""
    async with panel.page() as first, panel.page() as second:
        await first.next("state")
        await second.next("state")
        assert panel.server.open_pages == 2
        panel.host.change(project="another")
        assert (await first.next("state"))["project"] == (await second.next("state"))["project"] == "another"


@pytest.mark.parametrize(
    "state",
    [
        PanelState(project="empty"),
        state_of(profile=None, model=None),
        state_of(model=model_of()),
        state_of(model=model_of(16)),
        state_of(batch_size=None, sites=(), no_site_reason="The batch size is read from a file."),
        state_of(state=State.FAILED, failure=PanelFailure(message="it failed", path="train.py", line=3)),
        state_of(history=(), advice=()),
    ],
    ids=["empty", "no profile", "no sample", "one sample", "no site", "failed", "no history"],
)
async def test_sends_states_that_lack_things(state: PanelState) -> None:
    """A page can be opened at any time, whatever is known."""
    server = PanelServer(Host(state))
    try:
        address = URL(await server.start(), encoded=True)
        async with aiohttp.ClientSession() as client:
            panel = Panel(Host(state), server, address, client)
            async with panel.page() as page:
                assert (await page.next("state"))["state"] == state.state.value
    finally:
        await server.close()


async def test_numbers_that_json_lacks_become_null() -> None:
    """An infinite or undefined number never breaks the page's JSON."""
    profile = profile_of(small_tree(), untracked_ms=float("nan"))
    server = PanelServer(Host(state_of(profile=profile)))
    try:
        address = URL(await server.start(), encoded=True)
        async with aiohttp.ClientSession() as client, Panel(Host(state_of()), server, address, client).page() as page:
            assert (await page.next("profile"))["profile"]["untrackedMs"] is None
    finally:
        await server.close()


# -- what it passes on -------------------------------------------------------------------------------------------------


async def test_a_wish_reaches_the_host(panel: Panel) -> None:
    """Predict, apply, reveal, profile and cancel come to the host with what was asked, and are answered."""
    async with panel.page() as page:
        reply = await page.ask(method="predict", batchSize=20)
        assert reply["prediction"]["batchSize"] == 20
        assert reply["prediction"]["peakBytes"]["low"] <= reply["prediction"]["peakBytes"]["value"]
        assert (await page.ask(method="apply", batchSize=24))["error"] is None
        assert (await page.ask(method="reveal", path="model/net.py", line=20))["error"] is None
        assert (await page.ask(method="profile"))["error"] is None
        assert (await page.ask(method="cancel"))["error"] is None
    assert panel.host.asked == [
        ("predict", 20),
        ("apply", 24),
        ("reveal", "model/net.py", 20),
        ("profile",),
        ("cancel",),
    ]


async def test_an_edit_is_reported_after_it_is_seen(panel: Panel) -> None:
    """The state with the new batch size comes before the reply that says that it was written."""
    async with panel.page() as page:
        await page.next("state")
        await page.socket.send_json({"id": 1, "method": "apply", "batchSize": 24})
        assert (await page.next("state"))["batchSize"] == 24
        assert (await page.next("reply"))["error"] is None


async def test_an_edit_that_fails_says_why(panel: Panel) -> None:
    """The host's reason comes to the user as it is."""
    panel.host.refusal = "The file has changed meanwhile."
    async with panel.page() as page:
        assert (await page.ask(method="apply", batchSize=24))["error"] == "The file has changed meanwhile."


@pytest.mark.parametrize("size", [0, -1, 2**31, 1.5, "8", True, None])
async def test_refuses_what_is_no_batch_size(panel: Panel, size: Any) -> None:
    """Only whole numbers from 1 reach the host."""
    async with panel.page() as page:
        for method in ("predict", "apply"):
            assert "whole number" in (await page.ask(method=method, batchSize=size))["error"]
    assert panel.host.asked == []


@pytest.mark.parametrize(
    "place", [("/etc/passwd", 1), ("../other.py", 1), ("train.py", 0), ("train.py", "1"), (None, 1)]
)
async def test_reveals_only_places_that_are_shown(panel: Panel, place: tuple[Any, Any]) -> None:
    """The page can't have the editor open any file of the machine."""
    async with panel.page() as page:
        reply = await page.ask(method="reveal", path=place[0], line=place[1])
    assert reply["error"] is not None
    assert panel.host.asked == []


async def test_reveals_places_of_advice_and_failures(panel: Panel) -> None:
    """A place need not be in the profile to be shown: a failure has none."""
    panel.host.change(
        profile=None,
        failure=PanelFailure(message="it failed", path="data.py", line=7),
        advice=(Advice(code="x", message="m", path="loader.py", line=2),),
    )
    async with panel.page() as page:
        for path in ("data.py", "loader.py"):
            assert (await page.ask(method="reveal", path=path, line=7))["error"] is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "1", '{"id":1}', '{"id":"1","method":"cancel"}', '{"id":1,"method":"state"}']
)
async def test_survives_messages_that_are_none(panel: Panel, text: str) -> None:
    """What can't be read is passed over, and the page goes on being served."""
    async with panel.page() as page:
        await page.socket.send_str(text)
        assert (await page.ask(method="cancel"))["error"] is None
    assert panel.host.asked == [("cancel",)]


async def test_a_fault_of_the_host_is_told_and_survived(panel: Panel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page hears that it went wrong, without what."""

    async def fail() -> None:
        raise RuntimeError("a secret path")

    monkeypatch.setattr(panel.host, "profile", fail)
    async with panel.page() as page:
        reply = await page.ask(method="profile")
        assert "log" in reply["error"]
        assert "secret" not in reply["error"]
        assert (await page.ask(method="cancel"))["error"] is None


async def test_a_long_wish_does_not_hold_up_the_others(panel: Panel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prediction that has to be measured for leaves the rest answering."""
    finished = asyncio.Event()

    async def measure(batch_size: int) -> None:
        await finished.wait()

    monkeypatch.setattr(panel.host, "predict", measure)
    async with panel.page() as page:
        await page.socket.send_json({"id": 7, "method": "predict", "batchSize": 8})
        await page.socket.send_json({"id": 8, "method": "cancel"})
        assert (await page.next("reply"))["id"] == 8
        finished.set()
        reply = await page.next("reply")
        assert (reply["id"], reply["prediction"]) == (7, None)


# -- that it goes away -------------------------------------------------------------------------------------------------


async def test_closes_with_its_owner(panel: Panel) -> None:
    """Pages are told, the port is closed, and nothing is left running."""
    async with panel.page() as page:
        await page.next("state")
        closing = asyncio.ensure_future(panel.server.close())
        message = await asyncio.wait_for(page.socket.receive(), 20)
        assert message.type is aiohttp.WSMsgType.CLOSE
        assert (message.data, message.extra) == (aiohttp.WSCloseCode.GOING_AWAY, "closed")
        await page.socket.close()
        await closing
    assert panel.server.open_pages == 0
    with pytest.raises(aiohttp.ClientConnectorError):
        await panel.client.get(panel.address)


async def test_closing_without_a_start_is_nothing() -> None:
    """The owner need not know whether a panel was ever opened."""
    await PanelServer(Host(state_of())).close()


async def test_starts_again_at_another_address(panel: Panel) -> None:
    """A closed server's secret is worth nothing to the next."""
    await panel.server.close()
    address = await panel.server.start()
    assert address != str(panel.address)
    async with panel.client.get(address) as answer:
        assert answer.status == 200


# -- what is shipped ---------------------------------------------------------------------------------------------------


def test_the_bundle_is_this_source() -> None:
    """`skyline_lsp/panel/static` holds what clients/panel builds (make panel)."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "clients" / "panel" / "src").iterdir(), key=lambda path: path.name):
        digest.update(f"{path.name}\0".encode())
        digest.update(path.read_bytes())
    bundle = (ROOT / "skyline_lsp" / "panel" / "static" / "panel.js").read_text(encoding="utf-8")
    assert f"(sources {digest.hexdigest()})" in bundle.partition("\n")[0], "run `make panel` and commit what it writes"


def test_the_page_asks_nobody_else() -> None:
    """No address of another machine is in what is loaded, but for the names of XML vocabularies."""
    static = ROOT / "skyline_lsp" / "panel" / "static"
    for name in ("index.html", "panel.css", "panel.js", "icon.svg"):
        text = (static / name).read_text(encoding="utf-8").replace("http://www.w3.org/", "")
        assert "http://" not in text.replace("http://127.0.0.1", "")
        assert "https://" not in text
        assert "//cdn" not in text
