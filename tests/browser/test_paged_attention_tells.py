"""PagedAttention in a real browser: what is said is what happened, and each short play plays to its end."""

import pytest

from pages.paged_attention_scenes import SCENES
from tests.browser.paged_attention_widget import WIDGET, check, press, said, settled
from tests.browser.watching import Visitor


@pytest.mark.parametrize(
    ("play", "says", "never"),
    [
        # 32 slots in one piece are free, and would do for D; C, who wants 64, is before it.
        ("n20.96.30-n20.64.40-n20.64.30-n20.32.30", "Contiguous: D waits in line behind C.", "hole"),
        ("n90.96.96-n90.96.96-n20.64.36-n1.32.2", "D waits in line behind C.", "too few"),
        # One block is free; the copy and the next block are two.
        ("n90.96.96-n60.96.96-n8.32.30-f2-g3.16", "D: too few free blocks, so no token this time.", "decodes"),
        # 45 is the end: seventeen tokens from 28 on, so the second sixteen are one.
        ("n28.64.45-g0.16-g0.16", "A decodes 1 token. A has reached its end: 3 blocks", "16"),
        ("n28.64.45-n24.48.30-g0.6-n20.64.36-n20.64.36-s18-g3.16", "D decodes 9 tokens, contiguous only.", "16"),
    ],
)
def test_what_is_said_is_what_happened(play: str, says: str, never: str, visit: Visitor) -> None:
    tab = visit(f"paged-attention?play={play}").page
    settled(tab)
    assert says in said(tab) and never not in said(tab), said(tab)


def test_a_card_tells_where_the_other_scheme_stands(visit: Visitor) -> None:
    """D waited for A's piece: when it has ended with blocks, it has 27 of its 36 tokens in one piece."""
    tab = visit("paged-attention?play=n28.64.45-n24.48.30-g0.6-n20.64.36-n20.64.36-s15").page
    chip, title = (tab.locator(f'{WIDGET} [data-request="3"] .{name}') for name in ("pa-chip", "pa-says"))
    settled(tab)
    assert (title.inner_text(), chip.inner_text()) == ("35 tokens, stops at 36 (limit 64)", "contiguous: 24 tokens")
    for _ in range(3):
        press(tab, "step")
    assert (title.inner_text(), chip.inner_text()) == ("paged: has ended, at 36 tokens", "contiguous: 27 tokens")


@pytest.mark.parametrize("name", list(SCENES))
def test_a_scene_plays_to_its_end(name: str, visit: Visitor) -> None:
    tab = visit("paged-attention").page
    settled(tab)
    tab.click(f'{WIDGET} [data-scene="{name}"]')
    tab.wait_for_function(f"document.querySelector('{WIDGET}').dataset.shown === '{SCENES[name]['from']}'")
    tab.wait_for_timeout(1_400)
    assert tab.locator(WIDGET).get_attribute("data-shown") != str(SCENES[name]["from"]), "it plays by itself"
    tab.locator(f"{WIDGET} .kv-player input[type=range]").press("End")
    check(tab, SCENES[name]["actions"])
    press(tab, "step")
    check(tab, [*SCENES[name]["actions"], ["step"]])


def test_sliders_reach_as_far_as_the_limit(visit: Visitor) -> None:
    tab = visit("paged-attention").page
    prompt, stop = (tab.locator(f'{WIDGET} [data-control="{name}"]') for name in ("prompt", "stop"))
    for limit in ("96", "32", "64"):
        tab.select_option(f'{WIDGET} [data-control="limit"]', limit)
        assert (prompt.get_attribute("max"), stop.get_attribute("max")) == (str(int(limit) - 1), limit)
        prompt.press("End")
        assert (prompt.input_value(), stop.input_value()) == (str(int(limit) - 1), limit)
