"""The lab fragmentation: both allocators serve every request to its end, and every slot is accounted for."""

import random

import pytest

from explorer import params
from explorer.engine.block_pool import BlockPool
from explorer.errors import InputError
from explorer.labs import _serving, fragmentation
from explorer.labs._requests import Request
from explorer.labs._serving import serve_contiguous, serve_paged
from explorer.labs.base import LABS
from explorer.labs.runner import Finished, run_lab
from explorer.measuring.record import Record


def mix(count=30, seed=0):
    dice = random.Random(seed)
    return [Request(dice.randint(5, 200), dice.randint(1, 64)) for _ in range(count)]


def test_one_request_by_hand():
    """Prompt of 5 and 3 answer tokens, the last never written: 5, 6, 7 slots; 10 reserved in a memory of 16."""
    moments = list(serve_contiguous([Request(5, 3)], 16, [10]))
    assert [moment.used for moment in moments] == [5, 6, 7]
    assert [moment.waste.reserved for moment in moments] == [2, 1, 0]
    assert {moment.waste.internal for moment in moments} == {3} and {moment.taken for moment in moments} == {10}
    paged = list(serve_paged([Request(5, 3)], 4, 4))
    assert [(moment.used, moment.taken) for moment in paged] == [(5, 8), (6, 8), (7, 8)]


def test_contiguous_slots_add_up_at_every_step():
    requests = mix()
    reserved = [request.prompt + 64 for request in requests]
    moments = list(serve_contiguous(requests, 1024, reserved))
    for moment in moments:
        waste = moment.waste
        assert waste.used + waste.reserved + waste.internal + waste.external + waste.free == 1024
        assert waste.used + waste.reserved + waste.internal == moment.taken
    assert moments[0].waiting > 0, "the memory was never full: nothing is tested"
    assert any(moment.waste.external for moment in moments), "no hole was ever too small"


def test_blocks_keep_more_requests_running():
    requests = mix()
    contiguous = list(serve_contiguous(requests, 1024, [512] * len(requests)))
    paged = list(serve_paged(requests, 64, 16))
    assert max(moment.running for moment in contiguous) == 2 < max(moment.running for moment in paged)
    assert len(paged) < len(contiguous)
    assert all(moment.taken - moment.used < 16 * moment.running for moment in paged), "only tails are unfilled"


def test_every_request_gets_all_its_tokens(monkeypatch):
    """In a small pool too, where requests are sent back and start again."""
    requests, ended, pools = mix(40, 1), {}, []

    class Watched(BlockPool):
        def __init__(self, *args):
            super().__init__(*args)
            pools.append(self)

        def free(self, seq_id):
            ended[seq_id] = self.num_tokens[seq_id]
            super().free(seq_id)
            self.check_invariants()

    monkeypatch.setattr(_serving, "BlockPool", Watched)
    moments = list(serve_paged(requests, 34, 8))
    assert moments[-1].preempted > 0, "nothing was sent back: the pool is too large to test it"
    assert ended == {i: request.final for i, request in enumerate(requests)}
    assert pools[0].num_free == 34


@pytest.mark.model
def test_the_lab_on_the_real_model():
    lab = params.build(LABS["fragmentation"], {"requests": 5, "max_new_tokens": 32, "num_slots": 2048})
    (record,) = (event.record for event in run_lab(lab) if isinstance(event, Finished))
    prompts, answers = record.provenance["prompt_tokens"], record.provenance["answer_tokens"]
    assert len(prompts) == len(answers) == 5 and all(1 <= length <= 32 for length in answers)
    assert len(set(prompts)) > 2, "a mix of lengths"
    summary = record.summary
    served = list(serve_contiguous([Request(*pair) for pair in zip(prompts, answers, strict=True)], 2048, [1024] * 5))
    assert summary["contiguous_steps"] == len(served)
    assert summary["contiguous_filled"] < summary["paged_filled"] <= 100
    for row in record.rows:
        if row["contiguous_filled"] is not None:
            assert row["contiguous_filled"] + row["reserved"] + row["internal"] + row["external"] <= 100 + 1e-9
    assert Record.from_json(record.to_json()).rows == record.rows
    answer = lab.answer(summary)
    assert f"{summary['paged_filled']:.0f} % with blocks" in answer.en and "步" in answer.zh


def test_a_window_larger_than_the_memory_is_refused():
    with pytest.raises(InputError, match="at most num_slots=2048"):
        params.build(LABS["fragmentation"], {"max_len": 4096, "num_slots": 2048})


@pytest.mark.model
def test_a_window_too_short_for_the_mix_is_refused():
    lab = params.build(LABS["fragmentation"], {"max_len": 512, "max_new_tokens": 512})
    with pytest.raises(InputError, match="choose a longer window"):
        list(run_lab(lab))


def test_means_are_of_contended_rows():
    lab = fragmentation.Fragmentation()
    row = dict.fromkeys((column.name for column in lab.columns), 0.0)
    rows = [
        row | {"step": 1, "contiguous_filled": 20.0, "contiguous_waiting": 3, "paged_filled": 90.0},
        row | {"step": 2, "contiguous_filled": 40.0, "contiguous_waiting": 1, "paged_filled": None},
        row | {"step": 3, "contiguous_filled": 5.0, "contiguous_waiting": 0, "paged_filled": None},
    ]
    summary = lab.summarise(rows)
    assert summary["contiguous_waited"] and not summary["paged_waited"]
    assert "While requests were waiting" in lab.answer(summary).en
    assert "Everything fits at once here" in lab.answer(summary | {"contiguous_waited": False}).en
    assert summary["contiguous_filled"] == 30.0 and summary["contiguous_steps"] == 3
    assert summary["paged_filled"] == 90.0 and summary["paged_steps"] == 1
