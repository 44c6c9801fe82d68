"""A lab panel of the explorer itself, with the real model: what the page shows is what the Record says."""

import json

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.model
PANEL = "#lab-cache-bytes"


def test_cache_bytes_on_the_page(visit):
    page = visit("attention?cache-bytes.kv_len=50&cache-bytes.block_size=16").page
    page.click(f"{PANEL} .lab-measure")
    expect(page.locator(f"{PANEL} .lab-status")).to_contain_text("Done in", timeout=180_000)
    with page.expect_download() as waiting:
        page.click(f"{PANEL} .lab-save[data-kind=json]")
    record = json.loads(waiting.value.path().read_text(encoding="utf-8"))
    assert record["params"]["kv_len"] == 50
    assert record["summary"]["difference_bytes"] == 0
    assert record["summary"]["stored_bytes"] == 50 * 23_040
    assert record["summary"]["paged_difference_bytes"] == 14 * 23_040, "the unfilled slots of the last block"
    table = page.inner_text(f"{PANEL} .lab-table")
    assert "1,152,000" in table and "1,474,560" in table
    line = page.inner_text(f"{PANEL} .lab-provenance")
    assert record["provenance"]["weights"] in line and "SmolLM2-135M" in line and "bf16" in line
