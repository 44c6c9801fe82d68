"""Records that ship: measured becomes recorded, and what does not say where it comes from is refused."""

import json

import pytest

from explorer.measuring import recorded
from explorer.measuring.record import Column, Origin, Record

FACTS = {
    "device": "a test's device", "device_kind": "cuda", "implementation": "none", "torch": "2.13.0", "commit": "abc",
    "date": "2026-01-01T00:00:00Z", "complete": True,
}  # fmt: skip


def record(lab="a-lab", **changes):
    columns = (Column("n", "", Origin.COMPUTED), Column("n_ms", "ms", Origin.MEASURED), Column("q", "", Origin.QUOTED))
    whole = Record(lab, {"a": 1}, columns, [{"n": 1, "n_ms": 2.5, "q": 3}], {"n": 1}, dict(FACTS))
    return json.loads(whole.to_json()) | changes


def write(folder, name, items):
    (folder / name).write_text(json.dumps(items))


def test_measured_becomes_recorded_and_nothing_else_changes(tmp_path):
    write(tmp_path, "b.json", [record()])
    (found,) = recorded.shipped(folder=tmp_path)
    assert [column.origin for column in found.columns] == [Origin.COMPUTED, Origin.RECORDED, Origin.QUOTED]
    assert found.rows == [{"n": 1, "n_ms": 2.5, "q": 3}] and found.provenance["device"] == "a test's device"


def test_files_in_order_and_one_lab_of_them(tmp_path):
    write(tmp_path, "b.json", [record("two")])
    write(tmp_path, "a.json", [record("one"), record("two")])
    assert [found.lab for found in recorded.shipped(folder=tmp_path)] == ["one", "two", "two"]
    assert len(recorded.shipped("two", tmp_path)) == 2
    assert recorded.shipped(folder=tmp_path / "not there") == []


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ({}, "a.json: expected a list"),
        ([record(), {"lab": "x"}], "a.json, Record 2: expected exactly the fields"),
        ([record(columns=[{"name": "n", "unit": "", "origin": "guessed"}])], "columns cannot be read"),
        ([record(provenance=FACTS | {"device": ""})], r"Record 1 \(a-lab\): its provenance does not say device$"),
        ([record(provenance={"complete": True})], "device, device_kind, implementation, torch, commit, date"),
        ([record(provenance=FACTS | {"complete": False})], "did not end by itself"),
        ([record(rows=[{"n": 1, "q": 3}])], r"row 1 has \['n_ms'\]"),
        ([record(rows=[])], "no rows"),
    ],
)
def test_what_cannot_be_shown_honestly_is_refused(tmp_path, items, words):
    write(tmp_path, "a.json", items)
    with pytest.raises(ValueError, match=words):
        recorded.shipped(folder=tmp_path)


def test_what_is_no_json_is_refused(tmp_path):
    (tmp_path / "a.json").write_text("[")
    with pytest.raises(ValueError, match=r"a\.json: no JSON"):
        recorded.shipped(folder=tmp_path)


def test_what_ships_can_be_shown():
    for found in recorded.shipped():
        assert all(column.origin is not Origin.MEASURED for column in found.columns)
