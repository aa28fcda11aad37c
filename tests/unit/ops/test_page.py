"""The status page in a real browser, over the real HTTP server, with a status made up."""

import asyncio

import pytest
from aiohttp import ClientSession, web

from processor.ops.http import HttpServer
from processor.ops.page import StatusPage
from tests import browser
from tests.unit.ops.statuses import behind, keeping_up, not_ready, standing_by, stuck

pytestmark = browser.needed
DRAWN = "document.querySelectorAll('#rate path').length > 0"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser.running(tmp_path_factory.mktemp("chromium")) as address:
        yield address


def show(status, looking, address, **how):
    """Serve ``status``, open the page, and return what ``looking`` returns of its tab."""

    async def serve():
        page = StatusPage()
        server = HttpServer({"/": page.answer, "/status.json": lambda _: web.json_response(status)})
        url = await server.start("127.0.0.1", *range(8400, 8416))
        try:
            async with browser.opened(address, url, **how) as tab:
                await tab.wait_for(DRAWN)
                return await looking(tab, server)
        finally:
            await server.stop()

    return asyncio.run(serve())


@pytest.mark.parametrize(
    ("made", "word", "text"),
    [
        (keeping_up, "✓ Keeping up", "Records are read as they come."),
        (behind, "▲ Behind by 65 min", "At this pace it has caught up in about"),
        (not_ready, "▲ Not ready", "no broker has answered for 42 s"),
        (stuck, "✗ Hangs", "records[0]: stuck at offset 7"),
        (standing_by, "✓ Standing by", "more workers than partitions"),
    ],
)
def test_first_thing_said_is_how_it_is(made, word, text, chromium):
    async def looking(tab, _server):
        return await tab.text("#verdict"), await tab.evaluate("document.title"), tab.errors

    said, title, errors = show(made(), looking, chromium)
    assert said.startswith(word)
    assert text in said
    assert word.split(maxsplit=1)[1] in title
    assert errors == []


def test_tables_tell_what_the_status_does(chromium):
    async def looking(tab, _server):
        names = ("partitions", "chunks", "flushes", "fill", "letters")
        return {name: await tab.rows(f"#{name}") for name in names}

    rows = show(behind(), looking, chromium)
    assert len(rows["partitions"]) == 4
    assert rows["partitions"][0][:4] == ["0", "catching up", "12,600", "65 min"]
    assert len(rows["chunks"]) == 20
    assert "idle 5 min (clock)" in {row[5] for row in rows["chunks"]}
    assert rows["flushes"][0] == ["budget", "", "98,331"]
    assert [row[2] for row in rows["fill"]][-1] == "54"
    assert rows["letters"] == [["no key, or an empty one", "17"], ["key is not UTF-8", "2"]]


def test_rebalances_are_marked_on_every_time_line(chromium):
    async def looking(tab, _server):
        return await tab.evaluate("document.querySelectorAll('svg .mark').length")

    assert show(keeping_up(), looking, chromium) == 3 * 2


def test_session_key_is_text_whatever_it_is(chromium):
    status = keeping_up()
    status["chunks"][0]["session"] = "<img src=x onerror=alert(1)>"

    async def looking(tab, _server):
        cell = await tab.text("#chunks tbody th")
        return cell, await tab.evaluate("document.querySelectorAll('#chunks img').length")

    assert show(status, looking, chromium) == ("<img src=x onerror=alert(1)>", 0)


def test_page_says_loudly_that_the_worker_stopped_answering_and_when_it_is_back(chromium):
    async def looking(tab, server):
        port = int((await tab.evaluate("location.port")) or 0)
        await server.stop()
        await tab.wait_for("document.title.includes('Stopped answering')")
        said, stale = await tab.text("#verdict"), await tab.evaluate("document.body.className")
        await server.start("127.0.0.1", port)
        await tab.wait_for("document.title.includes('Keeping up')")
        return said, stale, await tab.evaluate("document.body.className")

    said, stale, after = show(keeping_up(), looking, chromium)
    assert said.startswith("✗ Stopped answering")
    assert "What is below is how it was then" in said
    assert (stale, after) == ("stale", "")


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_page_is_as_wide_as_the_window_and_its_text_stands_out(width, dark, chromium):
    async def looking(tab, _server):
        return (
            await tab.evaluate("document.documentElement.scrollWidth"),
            await tab.evaluate(f"({CONTRASTS})()"),
        )

    scrolls, contrasts = show(behind(), looking, chromium, width=width, dark=dark)
    assert scrolls <= width
    assert len(contrasts) > 100
    assert min(contrasts) >= 4.5  # WCAG 2.1, 1.4.3


#: Returns the contrast of every text on the page with what is behind it.
CONTRASTS = """() => {
  const channel = (it) => (it /= 255) <= 0.03928 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4;
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(Number);
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  };
  const behind = (it) => {
    const colour = getComputedStyle(it).backgroundColor;
    return colour !== "rgba(0, 0, 0, 0)" ? colour : behind(it.parentElement);
  };
  const says = (it) => [...it.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const texts = [...document.body.querySelectorAll("*")].filter(
    (it) => says(it) && !it.closest("script, noscript") && it.getClientRects().length);
  return texts.map((it) => {
    const style = getComputedStyle(it), isDrawn = it.closest("svg");
    const [a, b] = [light(isDrawn ? style.fill : style.color), light(behind(it))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  });
}"""


def test_nothing_but_the_page_itself_may_run():
    async def ask():
        server = HttpServer({"/": StatusPage().answer})
        url = await server.start("127.0.0.1", *range(8400, 8416))
        try:
            async with ClientSession() as client, client.get(url) as answer:
                return answer.headers, await answer.text()
        finally:
            await server.stop()

    headers, html = asyncio.run(ask())
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "//" not in html.replace("http://www.w3.org/2000/svg", "")
