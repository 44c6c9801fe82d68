"""The player and the figure component in a real browser, on the stand-in site."""

import pytest
from playwright.sync_api import Page as Tab

from tests.browser.watching import Visitor, drawn, query


def renders(tab: Tab, elem_id: str) -> int:
    """How often the figure has been drawn."""
    return int(tab.evaluate(f"+document.querySelector('#{elem_id} .kv-plot').dataset.renders"))


def test_the_player_by_keyboard(site: Visitor) -> None:
    tab = site("").page
    player = tab.locator("#widget .kv-player")
    scrub = player.locator("input[type=range]")
    scrub.focus()
    for key, index in [
        ("End", 5),
        ("Home", 0),
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("ArrowLeft", 1),
        ("ArrowDown", 0),
    ]:
        tab.keyboard.press(key)
        assert player.get_attribute("data-index") == str(index), key
    assert tab.locator("#widget svg rect[fill='var(--k)']").count() == 1
    tab.keyboard.press("ArrowRight")
    assert query(tab)["step"] == "1" and player.locator("output").inner_text() == "2 cells are filled"
    tab.keyboard.press(" ")
    tab.wait_for_function("document.querySelector('#widget .kv-player').dataset.index === '5'")
    toggle = player.locator("button").nth(1)
    tab.wait_for_function(
        "document.querySelectorAll('#widget .kv-player button')[1].getAttribute('aria-label') === 'Play'"
    )
    # At the end, Play begins again; a second press stops it.
    toggle.focus()
    tab.keyboard.press("Enter")
    assert toggle.get_attribute("aria-label") == "Pause"
    tab.keyboard.press(" ")
    assert toggle.get_attribute("aria-label") == "Play"
    stopped = player.get_attribute("data-index")
    tab.wait_for_timeout(300)
    assert player.get_attribute("data-index") == stopped


def test_a_player_starts_where_the_address_says(site: Visitor) -> None:
    assert site("?step=4").page.locator("#widget .kv-player").get_attribute("data-index") == "4"


@pytest.mark.parametrize(("reduced", "moves"), [(True, False), (False, True)])
def test_nothing_moves_by_itself_when_less_motion_is_asked(reduced: bool, moves: bool, site: Visitor) -> None:
    tab = site("", reduced_motion=reduced).page
    index = tab.evaluate(
        """async () => { const box = document.body.appendChild(KV.el('div')), draw = () => {};
        const player = KV.player(box, {length: 9, label: 'x', draw, describe: String, interval: 30, autoplay: true});
        await new Promise(done => setTimeout(done, 200)); player.pause(); box.remove(); return player.index; }"""
    )
    assert (index > 0) == moves


def test_a_player_stops_when_it_leaves_the_page(site: Visitor) -> None:
    playing = site("").page.evaluate(
        """async () => { const box = document.body.appendChild(KV.el('div'));
        const player = KV.player(box, {length: 99, label: 'x', draw: () => {}, describe: String, interval: 20});
        player.play(); const was = player.playing; box.remove();
        await new Promise(done => setTimeout(done, 100)); return [was, player.playing]; }"""
    )
    assert playing == [True, False]


def test_a_figure_keeps_its_node_zoom_and_theme(site: Visitor) -> None:
    tab = site("").page
    drawn(tab, "chart")
    node = tab.evaluate_handle("document.querySelector('#chart .kv-plot')")
    tab.evaluate("n => KV_PLOTLY.relayout(n, {'xaxis.range[0]': 2, 'xaxis.range[1]': 5})", node)
    ink = "n => n._fullLayout.font.color"
    light = tab.evaluate(ink, node)
    before = renders(tab, "chart")
    tab.locator("#slope input[type=range]").focus()
    tab.keyboard.press("ArrowRight")
    drawn(tab, "chart", before + 1)
    assert tab.evaluate("n => n._fullData[0].y[1]", node) == 4
    before = renders(tab, "chart")
    tab.click("#kv-theme")
    drawn(tab, "chart", before + 1)
    assert tab.evaluate("n => n.isConnected", node)
    assert tab.evaluate("n => n._fullLayout.xaxis.range", node) == [2, 5]
    assert tab.evaluate(ink, node) != light
    colour = tab.evaluate("n => [n._fullData[1].line.color, KV.css('--q-ink')]", node)
    assert colour[0] == colour[1], "a colour written as a CSS variable follows the theme"
    assert tab.locator("#chart figcaption").inner_text() == "One line rises, the other falls."


def test_a_figures_frames_are_kept_and_played(site: Visitor) -> None:
    tab = site("").page
    drawn(tab, "frames")
    assert tab.evaluate("document.querySelector('#frames .kv-plot')._transitionData._frames.length") == 4
    tab.locator("#frames .kv-player input").focus()
    tab.keyboard.press("End")
    tab.wait_for_function("document.querySelector('#frames .kv-plot')._fullData[0].x[0] === 3")


def test_plotly_is_the_wheels_and_waits_for_a_figure(site: Visitor, visit: Visitor) -> None:
    from plotly.offline import get_plotlyjs_version

    opened = site("")
    drawn(opened.page, "chart")
    assert opened.page.evaluate("KV_PLOTLY.version") == get_plotlyjs_version()
    without = visit("")
    if not without.page.locator(".kv-plot").count():
        assert not [url for url in without.urls if "plotly" in url.lower()]
