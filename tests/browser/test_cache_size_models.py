"""Cache size in a real browser: searching for a model, pasting a config, mixed layers, the ledger, ranks, switches."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page as Tab

from explorer.specs.catalog import models
from tests.browser.cache_size_widget import WIDGET, box, choose, control, drawn, mode, out
from tests.browser.conftest import Visitor
from tests.explorer.specs.family_configs import CONFIGS


def paste(tab: Tab, config: dict[str, Any]) -> None:
    if not tab.locator(f'{WIDGET} input[data-mode="config"]').is_checked():
        mode(tab, "config")
    tab.locator(f"{WIDGET} textarea").fill(json.dumps(config))
    drawn(tab, tab.get_by_role("button", name=re.compile("Read it|读取")).click)


def cells(tab: Tab, column: str) -> list[str]:
    return tab.locator(f'.cs-ledger tbody [data-column="{column}"]').all_inner_texts()


def test_the_box_finds_models_and_is_worked_by_keys(visit: Visitor) -> None:
    tab = visit("cache-size").page
    field, options = control(tab, "model"), tab.locator(f'{WIDGET} [role="option"]')
    field.focus()
    field.press("ArrowDown")
    assert field.get_attribute("aria-expanded") == "true" and options.count() == len(models())
    chosen = tab.locator(f'{WIDGET} [role="option"][aria-selected="true"]')
    assert chosen.get_attribute("data-name") == "llama-3.1-8b"
    assert field.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    field.fill("QWEN3 32")
    names = options.evaluate_all("nodes => nodes.map(n => n.dataset.name)")
    assert "qwen3-32b" in names and all("qwen3" in name for name in names)
    field.press("Escape")
    assert not options.first.is_visible() and field.input_value() == "Llama 3.1 8B" and "model=" not in tab.url
    field.fill("no such model")
    assert options.all_inner_texts() == ["No model matches."]
    field.press("Enter")  # nothing to take
    field.press("Tab")
    assert field.input_value() == "Llama 3.1 8B"
    choose(tab, "qwen3-32b")
    assert "model=qwen3-32b" in tab.url and out(tab, "per-token") == "256.00 KiB = 262,144 B"
    field.click()
    drawn(tab, tab.locator(f'{WIDGET} [role="option"][data-name="smollm2-135m"]').click)
    assert out(tab, "per-token") == "22.50 KiB = 23,040 B"


def test_a_pasted_config_becomes_the_figure(visit: Visitor) -> None:
    """Gemma 3 27B at 8,192 tokens by hand: 10 full layers keep 8,192 rows, 52 keep 1,024, of 2 * 16 * 128 * 2 bytes."""
    opened = visit("cache-size?tokens=8192")
    tab = opened.page
    mode(tab, "config")
    assert tab.locator(".cs-empty").is_visible() and not tab.locator(".cs-plot").is_visible()
    paste(tab, CONFIGS["gemma-3-27b"])
    row = 2 * 16 * 128 * 2
    assert "gemma3_text, 62 layers" in tab.locator(".cs-message.is-good").inner_text()
    assert tab.locator(".cs-result:visible").inner_text() == f"{row * (10 * 8_192 + 52 * 1_024):,} B"
    assert out(tab, "now") == out(tab, "per-token") == f"80.00 KiB = {10 * row:,} B"
    assert out(tab, "constant") == f"416.00 MiB = {52 * 1_024 * row:,} B, from 1,024 tokens on"
    assert out(tab, "crossing") == "weights not known" and "not known" in tab.locator(".cs-answer").inner_text()
    drawn(tab, lambda: control(tab, "params").fill("27"))
    assert out(tab, "weights") == "50.29 GiB (54.00 GB)" and out(tab, "crossing") == "653,855 tokens"
    drawn(tab, lambda: box(tab, "tokens").fill("512"))
    assert out(tab, "now") == f"496.00 KiB = {62 * row:,} B"  # every window still grows
    assert tab.locator(".cs-bend").count() == 1
    before = len(opened.asked)
    drawn(tab, lambda: control(tab, "tokens").press("ArrowRight"))
    assert len(opened.asked) == before


def test_a_wrong_config_is_told_and_the_last_one_stays(visit: Visitor) -> None:
    tab = visit("cache-size").page
    paste(tab, CONFIGS["qwen3-4b"])
    total = out(tab, "total")
    for text, line in (
        ("{", "not JSON"),
        ('{"model_type": "no-such"}', "no reader knows"),
        ("x" * 200_001, "longer than 200,000 characters"),
    ):
        tab.locator(f"{WIDGET} textarea").fill(text)
        tab.get_by_role("button", name="Read it").click()
        tab.wait_for_function(
            "line => document.querySelector('.cs-config .cs-message').textContent.includes(line)", arg=line
        )
        assert out(tab, "total") == total


def test_the_ledger_adds_up_and_names_owners(visit: Visitor) -> None:
    tab = visit("cache-size?tokens=8192").page
    paste(tab, CONFIGS["gemma-3n-e4b"])
    assert cells(tab, "now") == ["16.00 MiB", "64.00 MiB", "0 B", "0 B"]
    assert cells(tab, "read") == ["16.00 MiB", "64.00 MiB", "12.00 MiB", "48.00 MiB"]
    assert [text.split("\n")[0] for text in cells(tab, "owner")] == ["own", "own", "of layer 18", "of layer 19"]
    assert tab.locator('.cs-ledger tfoot [data-column="now"]').inner_text() == "80.00 MiB"
    assert cells(tab, "share") == ["20.0%", "80.0%", "0.0%", "0.0%"]
    assert out(tab, "total").startswith("80.00 MiB") and out(tab, "read").startswith("140.00 MiB")
    drawn(tab, lambda: control(tab, "scale").select_option("linear"))
    areas = tab.locator(".cs-area").evaluate_all("nodes => nodes.map(n => n.dataset.kind)")
    assert areas == ["sliding_window", "full_attention"]
    drawn(tab, lambda: control(tab, "scale").select_option("log"))
    assert tab.locator(".cs-strand").count() == 2 and tab.locator(".cs-key").count() == 2


def test_ranks_share_heads_and_copy_latents(visit: Visitor) -> None:
    """DeepSeek-V3: every GPU holds the whole latent. Qwen3 4B: 8 KV heads over 16 GPUs are 16 heads, one on each."""
    tab = visit("cache-size?tokens=1024").page
    paste(tab, CONFIGS["deepseek-v3"])
    drawn(tab, lambda: control(tab, "tp").select_option("8"))
    assert out(tab, "one-gpu") == out(tab, "total") == "68.63 MiB (71.96 MB)"
    assert out(tab, "all-gpus") == "549.00 MiB (575.67 MB)"
    choose_back(tab, "qwen3-4b", "16")
    assert out(tab, "total") == "144.00 MiB (150.99 MB)" and out(tab, "one-gpu") == "18.00 MiB (18.87 MB)"
    assert out(tab, "all-gpus") == "288.00 MiB (301.99 MB)"
    assert "one of 16 GPUs" in tab.locator(".cs-stage").inner_text()
    choose(tab, "smollm2-135m")
    assert "16 GPUs cannot share 3 heads" in tab.locator(".cs-panel > .cs-message").inner_text()
    assert control(tab, "tp").input_value() == "1" and not tab.locator('[data-out="one-gpu"]').is_visible()


def choose_back(tab: Tab, name: str, ranks: str) -> None:
    mode(tab, "catalogue")
    choose(tab, name)
    drawn(tab, lambda: control(tab, "tp").select_option(ranks))


def test_switches_draft_layers_and_formats(visit: Visitor) -> None:
    """Gemma 4 31B, 131,072 tokens: 10.78125 GiB, half of it with K = V stored once."""
    tab = visit("cache-size?tokens=131072").page
    paste(tab, CONFIGS["gemma-4-31b"])
    assert tab.locator(".cs-result:visible").inner_text() == f"{int(10.78125 * 2**30):,} B"
    switch = tab.locator(f'{WIDGET} [data-switch="k-eq-v-stored-once"]')
    drawn(tab, switch.check)
    assert tab.locator(".cs-result:visible").inner_text() == f"{int(5.390625 * 2**30):,} B"
    assert "assume=k-eq-v-stored-once" in tab.url
    assert any("one stored tensor" in line for line in tab.locator(".cs-assumed li").all_inner_texts())
    paste(tab, CONFIGS["deepseek-v3"])
    assert out(tab, "per-token") == f"68.63 KiB = {70_272:,} B" and switch.count() == 0
    drawn(tab, tab.locator(f'{WIDGET} [data-switch="mtp"]').check)
    assert out(tab, "per-token") == f"69.75 KiB = {62 * 1_152:,} B"
    assert any(text.startswith("draft") for text in cells(tab, "owner"))
    drawn(tab, lambda: control(tab, "dtype").select_option("fp8_ds_mla"))
    assert out(tab, "per-token") == f"39.72 KiB = {62 * 656:,} B"
    options = control(tab, "dtype").locator("option:disabled").evaluate_all("nodes => nodes.map(n => n.value)")
    assert "kivi-2" in options and "fp8_ds_mla" not in options
    mode(tab, "catalogue")
    assert "fp8_ds_mla is not defined" in tab.locator(".cs-panel > .cs-message").inner_text()
    assert control(tab, "dtype").input_value() == "bf16"


def test_compressed_rows_are_counted_whole(visit: Visitor) -> None:
    """DeepSeek-V4 Pro at 1,048,576 tokens: 9.62 GiB; a token more may add nothing, and r says so."""
    tab = visit("cache-size?tokens=1048576").page
    paste(tab, CONFIGS["deepseek-v4-pro"])
    assert out(tab, "total").startswith("9.62 GiB")
    whole = tab.locator(".cs-result:visible").inner_text()
    assert not tab.locator(".cs-formula:visible .is-fixed").nth(2).is_visible()
    drawn(tab, lambda: box(tab, "tokens").fill("1048577"))
    assert tab.locator(".cs-result:visible").inner_text() == whole
    assert tab.locator(".cs-formula:visible .is-fixed").nth(2).is_visible()


@pytest.mark.parametrize("path", ["cache-size", "zh-cache-size"])
@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing_with_a_mixed_model(
    visit: Visitor, axe: Callable[[Tab], None], path: str, theme: str, width: int
) -> None:
    tab = visit(f"{path}?tokens=8192&scale=linear&tp=8", theme=theme, width=width).page
    paste(tab, CONFIGS["gemma-4-31b"])
    tab.wait_for_timeout(600)
    axe(tab)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    mode(tab, "catalogue")
    control(tab, "model").click()
    axe(tab)
    assert not re.search(r"NaN|undefined|Infinity", tab.locator(WIDGET).inner_text())
