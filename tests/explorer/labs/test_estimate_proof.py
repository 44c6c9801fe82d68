"""The lab: its rows, what it says of them, and that it turns red."""

import threading
from dataclasses import replace

import pytest

from explorer import params
from explorer.errors import Stopped
from explorer.labs.base import LABS
from explorer.labs.estimate_proof import EstimateProof
from explorer.labs.runner import Finished, RowAdded, run_lab
from explorer.probing import proof


def record_of(**settings):
    for event in run_lab(params.build(LABS["estimate-proof"], settings), device="cpu"):
        if isinstance(event, Finished):
            return event.record
    raise AssertionError("the run did not finish")


def test_one_architecture():
    """gpt-oss: a window of 128; past it, transformers keeps 127 tokens of 8 x 2 x 64 x 2 bytes, and 8 bytes."""
    record = record_of(architecture="gpt_oss")
    before, after = record.rows
    assert (before["kv_len"], before["difference_bytes"], before["explanation"]) == (60, 8, "window length +8")
    assert (after["kv_len"], after["difference_bytes"], after["explained_bytes"]) == (300, -2_040, -2_040)
    assert after["explanation"] == "window keeps W-1 -2,048; window length +8"
    assert after["layers"] == "2/36" and after["unexplained_bytes"] == 0 and after["holds"] is True
    assert record.summary == {
        "architectures": 1, "proven": 1, "exact_rows": 0, "unexplained_bytes": 0, "failed": "",
    }  # fmt: skip
    assert EstimateProof().answer(record.summary).en.startswith("It holds: ")
    assert "All 7 architectures" in EstimateProof().answer(record.summary | {"architectures": 7}).en
    assert record.provenance["weights"] == "random"


def test_a_fault_in_a_reader_makes_it_red(monkeypatch):
    """A reader that takes one KV head too few: 2 x 64 x 2 bytes a token in the full layer, and in the window."""
    real = proof.from_config

    def wrong(config):
        spec = real(config)
        return replace(spec, layers=tuple(replace(layer, num_kv_heads=layer.num_kv_heads - 1) for layer in spec.layers))

    monkeypatch.setattr(proof, "from_config", wrong)
    record = record_of(architecture="gpt_oss")
    assert [row["holds"] for row in record.rows] == [False, False]
    assert record.rows[1]["unexplained_bytes"] == (300 + 127) * 2 * 64 * 2
    assert record.summary["failed"] == "gpt_oss" and record.summary["proven"] == 0
    assert EstimateProof().answer(record.summary).en == "Proven: 0 of 1 architecture; not: gpt_oss."


def test_what_cannot_be_built_is_not_proven(monkeypatch):
    monkeypatch.setitem(proof.__dict__, "thin_config", _refuse)
    record = record_of(architecture="llama")
    (row,) = record.rows
    assert row["holds"] is False and "no luck" in row["explanation"]
    assert record.summary["failed"] == "llama"


def _refuse(*args, **how):
    from explorer.errors import InputError

    raise InputError("no luck")


def test_it_streams_and_stops():
    stop, rows = threading.Event(), 0
    events = run_lab(EstimateProof(), device="cpu", stop=stop)

    def watch():
        nonlocal rows
        for event in events:
            if isinstance(event, RowAdded):
                rows += 1
                stop.set()

    with pytest.raises(Stopped):
        watch()
    assert 1 <= rows <= 3
