"""The lab that measures this machine's roof: its rows follow from one another, and its sums from the estimator."""

import pytest

from explorer import params
from explorer.errors import InputError
from explorer.estimators import roofline
from explorer.labs.base import LABS, Progress
from explorer.labs.runner import Finished, RowAdded, run_lab


@pytest.fixture(scope="module")
def events():
    lab = params.build(LABS["roofline-device"], {"size": 256, "kv_len": 1_024, "width": 1_024, "rounds": 3})
    return list(run_lab(lab, device="cpu"))


@pytest.fixture(scope="module")
def record(events):
    assert isinstance(events[-1], Finished)
    return events[-1].record


def test_it_needs_no_model_and_gives_a_row_early(events):
    assert LABS["roofline-device"].needs_model is False
    kinds = [type(event) for event in events]
    assert kinds.index(RowAdded) < kinds.index(Progress, kinds.index(RowAdded))
    assert events[kinds.index(RowAdded)].row["operation"] == "copy"


def test_rows_and_their_intensities(record):
    found = [(row["operation"], row["dtype"], row["intensity"]) for row in record.rows]
    squares = [
        (f"{n} × {n} × {n}", dtype, pytest.approx(2 * n / (3 * size)))
        for dtype, size in (("bf16", 2), ("fp32", 4))
        for n in (64, 128, 256)
    ]
    thin = [
        (f"{m} × 1024 × 1024", "bf16", pytest.approx(float(roofline.gemm(m, 1_024, 1_024).intensity)))
        for m in (1, 16, 256)
    ]
    heads = [(f"attention, g = {g}", "bf16", pytest.approx(g * 1_024 / (1_024 + g))) for g in (1, 8, 64)]
    assert found == [("copy", "uint8", 0.0), *squares, *thin, *heads]


def test_rates_follow_from_the_times(record):
    copy = record.rows[0]["achieved_gb_per_s"]
    peak = {
        dtype: max(
            r["achieved_gflops"]
            for r in record.rows
            if r["dtype"] == dtype and r["operation"].count("×") == 2 and len(set(r["operation"].split(" × "))) == 1
        )
        for dtype in ("bf16", "fp32")
    }
    for row in record.rows[1:]:
        assert row["step_p20_ms"] <= row["step_ms"] <= row["step_p80_ms"]
        assert row["achieved_gflops"] / row["achieved_gb_per_s"] == pytest.approx(row["intensity"])
        roof = min(peak[row["dtype"]], row["intensity"] * copy)
        assert row["bound_fraction"] == pytest.approx(row["achieved_gflops"] / roof)
    (product,) = [row for row in record.rows if row["operation"] == "256 × 256 × 256" and row["dtype"] == "fp32"]
    assert product["achieved_gflops"] * product["step_ms"] * 1e6 == pytest.approx(2 * 256**3)
    assert record.summary["peak_gflops"] == peak["bf16"] and record.summary["peak_fp32_gflops"] == peak["fp32"]


def test_the_ridge_is_the_best_product_over_the_copy(record):
    summary = record.summary
    assert summary["ridge_flops_per_byte"] == pytest.approx(summary["peak_gflops"] / summary["copy_gb_per_s"])
    assert summary["attention_gflops"] == record.rows[-3]["achieved_gflops"]
    lines = LABS["roofline-device"]().answer(summary)
    assert f"{summary['ridge_flops_per_byte']:.1f} FLOP/byte" in lines.en
    assert f"{summary['ridge_flops_per_byte']:.1f}" in lines.zh
    assert record.provenance["device_kind"] == "cpu" and record.provenance["repeats"] == 3


@pytest.mark.parametrize("settings", [{"size": 300}, {"kv_len": 10}, {"rounds": 1}, {"width": "wide"}])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(InputError):
        params.build(LABS["roofline-device"], settings)
