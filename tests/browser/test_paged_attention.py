"""PagedAttention in a real browser: after every click it shows what the block pool says, and no click is lost."""

import random
from collections.abc import Callable

import pytest
from playwright.sync_api import Page as Tab

from explorer.text import LANGUAGES, Lang
from pages.paged_attention_actions import MAX_ACTIONS
from pages.paged_attention_play import SCRIPT
from tests.browser.paged_attention_widget import READ, WIDGET, check, decoded, press, press_card, said, settled
from tests.browser.watching import Visitor, query


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_scripted_start(lang: Lang, visit: Visitor) -> None:
    tab = visit("zh-paged-attention" if lang == "zh" else "paged-attention").page
    settled(tab)
    seen = check(tab, SCRIPT)
    assert seen["tables"] == {"0": [8, 1, 6], "1": [0, 3]}
    assert [seen["owners"][block] for block in (8, 1, 6, 0, 3)] == ["A0", "A1", "A2", "B0", "B1"]
    scrub = tab.locator(f"{WIDGET} .kv-player input[type=range]")
    scrub.press("Home")
    for tables in ({}, {"0": [8, 1]}, {"0": [8, 1], "1": [0, 3]}, {"0": [8, 1, 6], "1": [0, 3]}):
        assert tab.evaluate(READ)["tables"] == tables
        scrub.press("ArrowRight")
    assert "6" in tab.locator(f"{WIDGET} .kv-play-text").inner_text()


def test_two_hundred_clicks_show_what_the_pool_says_after_each(visit: Visitor) -> None:
    tab, draw = visit("paged-attention").page, random.Random(20)
    settled(tab)
    actions, born = list(SCRIPT), 2
    waited = shared = 0
    for _ in range(200):
        cards = [int(key) for key in tab.evaluate(READ)["tables"]]
        kind = draw.choice(["new", "step", "step", "one", "many", "fork", "finish", "undo"]) if cards else "new"
        if kind == "new":
            press(tab, "new")
            actions.append(["new", 20, 64, 36])
        elif kind == "step":
            press(tab, "step")
            actions.append(["step"])
        elif kind == "undo":
            press(tab, "undo")
            actions.pop()
        else:
            request = draw.choice(cards)
            button = tab.locator(f'{WIDGET} [data-request="{request}"] [data-act="{kind}"]')
            if button.is_hidden():
                continue
            button.click()
            settled(tab)
            grown = {"one": ["grow", request, 1], "many": ["grow", request, 16]}
            actions.append(grown.get(kind, [kind, request]))
        born = sum(action[0] in ("new", "fork") for action in actions)
        seen = check(tab, actions)
        waited += bool(tab.locator(f"{WIDGET} .pa-waits").nth(1).inner_text())
        shared += seen["counts"]["shared"] > 0
    assert decoded(query(tab)["play"]) == actions and born > 20
    assert waited > 20 and shared > 20, "the clicks met neither a queue nor a shared block"


def test_fast_clicks_are_all_kept_and_asked_for_one_at_a_time(visit: Visitor) -> None:
    opened = visit("paged-attention")
    tab = opened.page
    settled(tab)
    before = len(opened.urls)
    tab.evaluate(
        f"""() => {{ for (let i = 0; i < 200; i++)
            document.querySelector('{WIDGET} [data-press="' + (i % 9 === 0 ? 'new' : 'step') + '"]').click() }}"""
    )
    settled(tab)
    actions = SCRIPT + [["new", 20, 64, 36] if i % 9 == 0 else ["step"] for i in range(200)]
    check(tab, actions)
    assert tab.locator(f"{WIDGET} .kv-play-count").inner_text() == f"{len(actions) + 1} / {len(actions) + 1}"
    assert len(opened.urls) - before <= 8, "clicks that come while a request is under way share the next one"


def test_a_branch_is_split_by_its_first_writer(visit: Visitor) -> None:
    tab = visit("paged-attention").page
    settled(tab)
    press_card(tab, 0, "fork")
    assert tab.evaluate(READ)["owners"][6] == "A2 C2"
    assert tab.locator(f"{WIDGET} .pa-block.is-shared").count() == 3
    assert tab.locator(f"{WIDGET} .pa-block.is-copy").count() == 0
    press_card(tab, 2, "one")
    copy = tab.locator(f"{WIDGET} .pa-block.is-copy")
    assert copy.get_attribute("data-block") == "10" and "copy of 6" in copy.inner_text()
    assert tab.locator(f"{WIDGET} .pa-block.is-source").get_attribute("data-block") == "6"
    assert tab.locator(f"{WIDGET} .pa-arrow").count() == 1
    assert "copied to block 10" in tab.locator(f"{WIDGET} .kv-play-text").inner_text()
    check(tab, [*SCRIPT, ["fork", 0], ["grow", 2, 1]])
    press_card(tab, 0, "one")
    assert tab.locator(f"{WIDGET} .pa-block.is-copy").count() == tab.locator(f"{WIDGET} .pa-arrow").count() == 0


def test_one_scheme_serves_whom_the_other_lets_wait(visit: Visitor) -> None:
    tab = visit("paged-attention").page
    settled(tab)
    press(tab, "new")
    press(tab, "new")
    assert tab.locator(f"{WIDGET} .pa-waits").all_inner_texts() == ["", "Waiting for a hole: D"]
    assert tab.locator(f'{WIDGET} [data-request="3"] .pa-chip').inner_text() == "contiguous: waits"
    assert len(check(tab, [*SCRIPT, *[["new", 20, 64, 36]] * 2])["tables"]["3"]) == 2
    assert tab.locator(f'{WIDGET} [data-out="reserved-waiting"]').inner_text() == "1"
    tab.select_option(f'{WIDGET} [data-control="limit"]', "32")
    holes = tab.locator(f'{WIDGET} [data-out="reserved-hole"]')
    assert holes.inner_text() == "16" and "shorter than 64" in tab.locator(f"{WIDGET} .pa-counts").inner_text()
    press_card(tab, 0, "finish")
    assert tab.locator(f"{WIDGET} .pa-waits").all_inner_texts() == ["", ""]
    assert "Contiguous: D gets slots 0 to 63" in said(tab)
    assert "shorter than 32" in tab.locator(f"{WIDGET} .pa-counts").inner_text(), "nobody waits: the control decides"


def test_a_full_pool_says_so_and_loses_nothing(visit: Visitor) -> None:
    tab = visit("paged-attention?play=n90.96.96-n90.96.96").page
    settled(tab)
    press(tab, "new")
    assert "C waits: too few blocks are free" in said(tab)
    assert tab.locator(f"{WIDGET} .pa-waits").first.inner_text() == "Waiting for blocks: C"
    check(tab, [["new", 90, 96, 96], ["new", 90, 96, 96], ["new", 20, 64, 36]])


def test_keyboard_alone(visit: Visitor) -> None:
    tab = visit("paged-attention").page
    settled(tab)
    tab.locator(f'{WIDGET} [data-press="new"]').focus()
    tab.keyboard.press("Enter")
    settled(tab)
    one = tab.locator(f'{WIDGET} [data-request="0"] [data-act="one"]')
    one.focus()
    for _ in range(3):
        tab.keyboard.press("Space")
        settled(tab)
    assert one.evaluate("node => node === document.activeElement"), "the focus stays where the reader presses"
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.dataset.act") == "many"
    logical = tab.locator(f'{WIDGET} [data-request="0"] .pa-logical').nth(2)
    logical.focus()
    assert tab.locator(f"{WIDGET} .pa-block.is-pointed").get_attribute("data-block") == "6"
    assert "physical block 6, 5 of 16 slots filled" in (logical.get_attribute("aria-label") or "")
    where = tab.locator(f"{WIDGET} .pa-where")
    assert where.inner_text() == "A2 holds tokens 32 to 36: block 6, slots 96 to 100."
    tab.locator(f'{WIDGET} [data-press="undo"]').focus()
    assert tab.locator(f"{WIDGET} .pa-block.is-pointed").count() == 0
    tab.keyboard.press("Enter")
    settled(tab)
    check(tab, [*SCRIPT, ["new", 20, 64, 36], ["grow", 0, 1], ["grow", 0, 1]])


def test_the_focus_is_not_lost_with_a_request_that_ends(visit: Visitor) -> None:
    tab = visit("paged-attention").page
    settled(tab)
    for name in ("many", "finish"):
        tab.locator(f'{WIDGET} [data-request="1"] [data-act="{name}"], {WIDGET} [data-act="{name}"]').first.focus()
        tab.keyboard.press("Enter")
        settled(tab)
    assert tab.evaluate("document.activeElement.dataset.press") == "step"


def test_an_action_from_an_earlier_moment_replaces_what_came_after(visit: Visitor) -> None:
    tab = visit("paged-attention").page
    settled(tab)
    for _ in range(4):
        press(tab, "step")
    scrub = tab.locator(f"{WIDGET} .kv-player input[type=range]")
    scrub.press("Home")
    scrub.press("ArrowRight")
    tab.click(f'{WIDGET} [data-press="step"]')
    settled(tab)
    check(tab, [SCRIPT[0], ["step"]])
    press(tab, "reset")
    check(tab, SCRIPT)


def test_it_runs_by_itself_until_told_to_rest(visit: Visitor) -> None:
    tab = visit("paged-attention").page
    settled(tab)
    run = tab.locator(f'{WIDGET} [data-press="run"]')
    run.click()
    assert run.get_attribute("aria-pressed") == "true"
    tab.wait_for_function(f"Number(document.querySelector('{WIDGET}').dataset.actions) >= 6")
    run.click()
    settled(tab)
    check(tab, decoded(query(tab)["play"]))
    count = tab.locator(WIDGET).get_attribute("data-actions")
    tab.wait_for_timeout(1_000)
    assert tab.locator(WIDGET).get_attribute("data-actions") == count
    press(tab, "random")
    check(tab, decoded(query(tab)["play"]))


def test_the_history_has_an_end(visit: Visitor) -> None:
    tab = visit(f"paged-attention?play=n20.64.36-s{MAX_ACTIONS - 1}").page
    settled(tab)
    assert tab.locator(f'{WIDGET} [data-press="step"]').is_disabled()
    assert str(MAX_ACTIONS) in tab.locator(f"{WIDGET} .pa-say").inner_text()
    press(tab, "undo")
    assert tab.locator(f'{WIDGET} [data-press="step"]').is_enabled()
    assert tab.locator(f"{WIDGET} .pa-say").inner_text() == ""


@pytest.mark.parametrize("play", ["rubbish", "n20.64.10", "g5.1", "s9999", "n1e3.64.36", "f0", "%3Cimg%20src=x%3E"])
def test_a_wrong_address_gives_way_to_the_scripted_start(play: str, visit: Visitor) -> None:
    tab = visit(f"paged-attention?play={play}&prompt=95&limit=32&stop=2").page
    settled(tab)
    assert tab.evaluate(READ)["tables"] == {"0": [8, 1, 6], "1": [0, 3]}
    press(tab, "new")
    check(tab, [*SCRIPT, ["new", 31, 32, 32]], limit="32")


def test_what_the_server_does_not_confirm_is_taken_back(visit: Visitor) -> None:
    tab = visit("paged-attention").page
    settled(tab)
    tab.route("**/component_server/**", lambda route: route.fulfill(json={"status": "error", "message": "no room"}))
    tab.click(f'{WIDGET} [data-press="new"]')
    settled(tab)
    assert tab.locator(f"{WIDGET} .pa-say").inner_text() == "no room"
    check(tab, SCRIPT)
    tab.unroute("**/component_server/**")
    press(tab, "step")
    assert tab.locator(f"{WIDGET} .pa-say").inner_text() == ""
    check(tab, [*SCRIPT, ["step"]])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_crowded_pool_fits_a_phone_and_passes_axe(theme: str, visit: Visitor, axe: Callable[[Tab], None]) -> None:
    busy = "n28.64.45-n24.48.30-g0.6" + "-f0" * 10 + "-s"
    tab = visit(f"paged-attention?play={busy}", width=390, height=800, theme=theme).page
    settled(tab)
    assert len(tab.evaluate(READ)["tables"]) == 12
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    check(tab, decoded(busy))
    axe(tab)
