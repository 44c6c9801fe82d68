"""PagedAttention, without a browser: the replay by hand and against a memory of every token, its checks, its texts."""

import json
import random
import re
import time
from fractions import Fraction

import orjson
import pytest

from explorer.estimators.paging import expected_unfilled, paging
from explorer.text import LANGUAGES
from pages import PAGES, paged_attention, paged_attention_play, paged_attention_tables
from pages._content import sections, strings
from pages._page import Ctx
from pages.paged_attention_actions import LIMITS, MAX_ACTIONS, read_actions
from pages.paged_attention_play import BLOCK_SIZE, MAX_STATES, NUM_BLOCKS, SCRIPT, answer, replay
from pages.paged_attention_scenes import SCENES


def states(*actions):
    """The states after each of the actions, as the browser gets them."""
    return orjson.loads(orjson.dumps(replay(read_actions(list(actions)))))


def after(*actions):
    return states(*actions)[-1]


def test_the_scripted_start_by_hand():
    """28 tokens in 8 and 1, 24 in 0 and 3; six more make 34, of which two lie in block 6."""
    seen = states(*SCRIPT)
    tables = [state["paged"]["tables"] for state in seen]
    assert tables == [{}, {"0": [8, 1]}, {"0": [8, 1], "1": [0, 3]}, {"0": [8, 1, 6], "1": [0, 3]}]
    last = seen[-1]["paged"]
    assert (last["free"], last["used"], last["shared"], last["unfilled"]) == (7, 5, 0, 48 - 34 + 32 - 24)
    assert last["events"] == [["more", 0, [6]]] and last["generated"] == 6


def test_one_piece_each_by_hand():
    """A: 64 slots, 34 filled, 11 to come until 45; B: 48, 24 and 6; one hole of 80 is left."""
    seen = after(*SCRIPT)["reserved"]
    assert seen["rows"] == {"0": [0, 64], "1": [64, 48]} and seen["holes"] == [[112, 80]]
    assert seen["waste"]["64"] == [58, 17, 19 + 18, 0, 80]
    assert seen["waste"]["96"] == [58, 17, 19 + 18, 80, 0], "the hole is too short for 96"


def test_one_piece_refuses_first_and_lets_in_who_came_first():
    arrivals = [["new", 20, 96, 30], ["new", 20, 96, 40], ["new", 20, 64, 30], ["new", 20, 32, 30]]
    seen = states(*arrivals)
    assert [len(state["paged"]["tables"]) for state in seen] == [0, 1, 2, 3, 4]
    assert seen[3]["reserved"]["events"] == [["wait", 2, 20]]
    assert seen[4]["reserved"]["waiting"] == [[2, 20], [3, 20]]
    ended = after(*arrivals, ["finish", 0])["reserved"]
    assert ended["rows"] == {"1": [96, 96], "2": [0, 64], "3": [64, 32]} and ended["waiting"] == []
    assert [event[0] for event in ended["events"]] == ["stop", "got", "got"]


def test_nobody_overtakes_who_waits():
    seen = after(["new", 20, 96, 30], ["new", 20, 64, 40], ["new", 20, 64, 30], ["new", 20, 32, 30])["reserved"]
    assert seen["holes"] == [[160, 32]] and seen["waiting"] == [[2, 20], [3, 20]], "32 slots would do for the last one"


def test_the_two_go_on_at_their_own_pace():
    """Who waits for a hole decodes nothing meanwhile, and is still there when the other server is done."""
    arrivals = [["new", 20, 96, 24], ["new", 20, 96, 24], ["new", 20, 96, 24]]
    seen = states(*arrivals, *[["step"]] * 8)
    assert (seen[7]["paged"]["ended"], seen[7]["paged"]["generated"]) == (3, 12)
    assert (seen[7]["reserved"]["ended"], seen[7]["reserved"]["generated"]) == (2, 8)
    assert list(seen[7]["requests"]) == ["2"]
    assert (seen[11]["reserved"]["ended"], seen[11]["reserved"]["generated"], seen[11]["requests"]) == (3, 12, {})


def test_a_branch_shares_and_the_first_writer_gets_a_copy():
    seen = states(*SCRIPT, ["fork", 0], ["grow", 2, 1], ["grow", 0, 1])
    forked, copied, written = (state["paged"] for state in seen[4:])
    assert forked["tables"]["2"] == forked["tables"]["0"] == [8, 1, 6]
    assert (forked["used"], forked["shared"], [forked["refs"][id] for id in (8, 1, 6)]) == (5, 3, [2, 2, 2])
    assert copied["copies"] == [[6, 10]] and copied["tables"]["2"] == [8, 1, 10]
    assert (copied["used"], copied["shared"], copied["refs"][6], copied["refs"][10]) == (6, 2, 1, 1)
    assert written["copies"] == [] and written["tables"]["0"] == [8, 1, 6], "who is left alone writes in place"
    assert seen[4]["reserved"]["rows"]["2"] == [112, 64] and seen[4]["reserved"]["tokens"]["2"] == 34


def test_a_full_pool_refuses_and_loses_nothing():
    full = [["new", 90, 96, 96], ["new", 90, 96, 96]]
    before, refused = states(*full, ["new", 20, 32, 30])[2:]
    assert before["paged"]["free"] == 0 and refused["paged"]["events"] == [["wait", 2, 20]]
    assert refused["paged"]["tables"] == before["paged"]["tables"]
    stuck = states(*full, ["fork", 0], ["grow", 0, 2])[-2:]
    assert stuck[1]["paged"]["events"] == [["full", 0]], "the copy of the shared last block finds no room"
    for name in ("tables", "tokens", "refs", "free", "used", "generated"):
        assert stuck[1]["paged"][name] == stuck[0]["paged"][name]


def test_a_step_ends_who_is_done_before_the_next_is_let_in():
    seen = states(["new", 90, 96, 91], ["new", 90, 96, 96], ["new", 20, 32, 30], ["step"])[-1]["paged"]
    assert [event[0] for event in seen["events"]] == ["end", "got"]
    assert seen["tables"]["2"] == [8, 1] and seen["tokens"] == {"1": 91, "2": 20}


@pytest.mark.parametrize(
    ("actions", "why"),
    [
        ([["step"]], "nobody"),
        ([*SCRIPT, ["finish", 0], ["grow", 0, 1]], "gone"),
        ([*SCRIPT, ["finish", 0], ["fork", 0]], "not-running"),
        ([["new", 20, 64, 36], *[["fork", 0]] * 12], "many"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(actions, why):
    before, refused = states(*actions)[-2:]
    assert refused["refused"] == why
    assert refused["paged"]["tables"] == before["paged"]["tables"]
    assert refused["reserved"]["rows"] == before["reserved"]["rows"]


def test_nobody_decodes_beyond_the_own_end():
    """Ten tokens are left of the forty asked for; then both servers take everything back."""
    seen = after(["new", 20, 64, 30], ["grow", 0, 40])
    for server in (seen["paged"], seen["reserved"]):
        assert (server["generated"], server["ended"], server["tokens"]) == (10, 1, {})
    assert seen["paged"]["free"] == NUM_BLOCKS and seen["reserved"]["holes"] == [[0, 192]]


def some_actions(draw, count):
    """Actions as a reader without a plan would press them."""
    actions, born = [], 0
    for _ in range(count):
        kind = draw.choice(["new", "new", "step", "step", "step", "grow", "grow", "fork", "finish"]) if born else "new"
        if kind == "new":
            limit = draw.choice(LIMITS)
            prompt = draw.randint(1, limit - 1)
            actions.append(["new", prompt, limit, draw.randint(prompt + 1, limit)])
        elif kind == "step":
            actions.append(["step"])
        else:
            numbers = [draw.randint(max(0, born - 6), born - 1)] + ([draw.randint(1, 40)] if kind == "grow" else [])
            actions.append([kind, *numbers])
        born += kind in ("new", "fork")
    return actions


class Memory:
    """Slots with tokens in them, and what each request has said: whatever a table points to must read back as that."""

    def __init__(self):
        self.slots = {}
        self.said = {}

    def follow(self, action, state):
        paged = state["paged"]
        if action[0] == "fork" and not state["refused"]:
            self.said[max(paged["tables"], key=int)] = list(self.said[str(action[1])])
        for source, target in paged["copies"]:
            for offset in range(BLOCK_SIZE):
                self.slots[target, offset] = self.slots.get((source, offset))
        for request, tokens in paged["tokens"].items():
            said, table = self.said.setdefault(request, []), paged["tables"][request]
            while len(said) < tokens:
                said.append(object())
                block, offset = divmod(len(said) - 1, BLOCK_SIZE)
                self.slots[table[block], offset] = said[-1]
        for request, tokens in paged["tokens"].items():
            read = [self.slots[paged["tables"][request][j // BLOCK_SIZE], j % BLOCK_SIZE] for j in range(tokens)]
            assert read == self.said[request][:tokens], f"request {request} reads tokens that are not its own"


@pytest.mark.parametrize("seed", range(25))
def test_random_plays_keep_every_token_and_every_block(seed):
    actions = some_actions(random.Random(seed), 120)
    memory = Memory()
    for action, state in zip(actions, states(*actions)[1:], strict=True):
        memory.follow(action, state)
        paged, reserved = state["paged"], state["reserved"]
        in_tables = {block for table in paged["tables"].values() for block in table}
        assert paged["used"] == len(in_tables) and paged["free"] + paged["used"] == NUM_BLOCKS
        assert paged["shared"] == sum(count > 1 for count in paged["refs"])
        for limit, parts in reserved["waste"].items():
            assert sum(parts) == NUM_BLOCKS * BLOCK_SIZE and min(parts) >= 0
            assert parts[3] == sum(length for _, length in reserved["holes"] if length < int(limit))
        for server in (paged, reserved):
            assert not set(server["tokens"]) & {str(request) for request, _ in server["waiting"]}
            assert all(tokens < state["requests"][request][1] for request, tokens in server["tokens"].items())


@pytest.mark.parametrize(
    ("actions", "says"),
    [
        (None, "a list"),
        ("step", "a list"),
        ({"0": ["step"]}, "a list"),
        ([["step"]] * (MAX_ACTIONS + 1), "401 actions"),
        ([[]], "action 0"),
        (["step"], "action 0"),
        ([["step", 1]], "action 0"),
        ([["jump", 1]], "action 0"),
        ([[["new"], 20, 64, 36]], "action 0"),
        ([["new", 20, 64]], "action 0"),
        ([["new", 0, 64, 36]], "prompt=0"),
        ([["new", 64, 64, 64]], "prompt=64, expected 1 to 63"),
        ([["new", 20.0, 64, 36]], "prompt=20.0"),
        ([["new", True, 64, 36]], "prompt=True"),
        ([["new", 20, 65, 36]], "limit=65"),
        ([["new", 20, 10**30, 36]], "limit=a number of more than 15 digits"),
        ([["new", 20, 64, 20]], "final=20, expected 21 to 64"),
        ([["new", 20, 64, 65]], "final=65"),
        ([["step"], ["grow", 0, 1]], "action 1: there is no request yet"),
        ([*SCRIPT, ["grow", 2, 1]], "action 3: request=2, expected 0 to 1"),
        ([*SCRIPT, ["grow", 0, 0]], "tokens=0"),
        ([*SCRIPT, ["grow", 0, 97]], "tokens=97"),
        ([*SCRIPT, ["fork", -1]], "request=-1"),
        ([*SCRIPT, ["finish", None]], "request=None"),
        ([*SCRIPT, ["finish", "<img src=x>" * 50]], "request="),
    ],
)
def test_wrong_actions_are_told_in_one_line(actions, says):
    for lang in LANGUAGES:
        found = answer({"actions": actions}, lang)
        assert found["status"] == "error" and "\n" not in found["message"] and len(found["message"]) < 140
    assert says in answer({"actions": actions}, "en")["message"]
    assert re.search("[\u4e00-\u9fff]", found["message"])


@pytest.mark.parametrize(
    "question",
    [
        None,
        [],
        {"actions": SCRIPT, "to": 4},
        {"actions": SCRIPT, "to": True},
        {"actions": SCRIPT, "from": -1},
        {"actions": SCRIPT, "from": 3, "to": 2},
        {"actions": [["step"]] * 100, "from": 100 - MAX_STATES},
    ],
)
def test_wrong_questions_are_told(question):
    assert answer(question, "en")["status"] == "error"


def test_any_stretch_of_the_history_can_be_asked_for():
    whole = states(*SCRIPT)
    for first in range(4):
        for last in range(first, 4):
            found = answer({"actions": SCRIPT, "from": first, "to": last}, "en")
            assert orjson.loads(orjson.dumps(found["states"])) == whole[first : last + 1]
    assert len(answer({"actions": SCRIPT}, "en")["states"]) == 1
    many = some_actions(random.Random(3), 200)
    assert len(answer({"actions": many, "from": 201 - MAX_STATES}, "en")["states"]) == MAX_STATES


def test_our_own_mistake_is_logged_and_told_without_details(monkeypatch, caplog):
    monkeypatch.setattr(paged_attention_play, "replay", lambda *_: 1 / 0)
    found = answer({"actions": SCRIPT}, "en")
    assert found == {"status": "error", "message": paged_attention_play.BROKEN.en} and "division" in caplog.text


def test_four_hundred_actions_are_replayed_in_time():
    question = {"actions": some_actions(random.Random(400), MAX_ACTIONS)}
    times = []
    for _ in range(5):
        started = time.perf_counter()
        assert answer(question, "en")["status"] == "ready"
        times.append(time.perf_counter() - started)
    assert sorted(times)[2] < 0.1, times


@pytest.mark.parametrize("lang", LANGUAGES)
def test_props_are_plain(lang):
    for props in (paged_attention.play_props(lang), paged_attention.size_props(lang)):
        assert json.loads(json.dumps(props, allow_nan=False)) == props
    assert paged_attention.size_props(lang)["models"][0]["bytes"] == 131_072
    assert [len(mix) for mix in paged_attention_tables.MIXES.values()] == [64, 64, 16]
    for low, high, mix in zip((20, 5, 4_000), (900, 120, 30_000), paged_attention_tables.MIXES.values(), strict=True):
        assert low <= min(mix) and max(mix) <= high


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_quoted_table(lang):
    markup = paged_attention_tables.waste_table(Ctx(lang, paged_attention.PAGE, None, PAGES))
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", markup)]
    assert rows[1:] == [
        ["Orca (Max)", "20.4", "13.3", "57.3", "8.9"],
        ["Orca (Pow2)", "26.8", "17.9", "13.6", "41.6"],
        ["Orca (Oracle)", "38.2", "25.2", "–", "36.6"],
        ["vLLM", "96.3", "–", "–", "–"],
    ]
    assert "kv-quoted" in markup
    for _, *parts in paged_attention_tables.MEASURED[:3]:
        assert sum(part or 0 for part in parts) == pytest.approx(100, abs=0.11)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_shares_of_the_two_datasets_are_right(lang):
    """Half a block of 16, 7.5 slots, over the mean lengths in figure 11 of the paper."""
    text = sections("paged-attention", lang)["size"].replace(" %", "%")
    for tokens in (Fraction("161.31") + Fraction("337.99"), Fraction("19.31") + Fraction("58.45")):
        share = expected_unfilled(16) / (tokens + expected_unfilled(16))
        assert f"{float(share):.1%}" in text
    assert "161 + 338" in text and "19 + 58" in text


@pytest.mark.parametrize("lang", LANGUAGES)
def test_what_is_said_of_the_mixes_is_right(lang):
    """Near (B - 1) / 2 while blocks are shorter than requests, far from it where they are longer."""
    text, mixes = sections("paged-attention", lang)["size"], paged_attention_tables.MIXES
    means = [float(paging(mix, 16).unfilled_each) for mix in mixes.values()]
    assert (f"{min(means):.1f}", f"{max(means):.1f}", float(expected_unfilled(16))) == ("6.8", "7.2", 7.5)
    assert f"{float(paging(mixes['short'], 512).unfilled_each):.0f}" == "481" and expected_unfilled(512) == 255.5
    assert all(number in text for number in ("6.8", "7.2", "7.5", "481", "255.5", "512"))


def test_each_scene_shows_what_its_name_promises():
    waits, holes, copy, full = (
        states(*SCENES[name]["actions"])[SCENES[name]["from"] :] for name in ("waits", "holes", "copy", "full")
    )
    assert waits[-1]["reserved"]["waiting"] == [[3, 20]] and waits[-1]["paged"]["waiting"] == []
    last = holes[-1]["reserved"]
    lengths = [length for _, length in last["holes"]]
    assert last["waiting"] == [[3, 20]] and holes[-1]["requests"]["3"][0] == 64 == sum(lengths) > max(lengths)
    assert last["waste"]["64"][3] == 64 and "3" in holes[-1]["paged"]["tables"]
    assert [state["paged"]["copies"] for state in copy] == [[], [], [[6, 10]], []]
    assert [bool(state["paged"]["waiting"]) for state in full] == [False, False, False, True, True, True, False]


def test_both_languages_say_the_same_with_the_same_numbers():
    one, other = strings("paged-attention", "en"), strings("paged-attention", "zh")
    assert one.keys() == other.keys()
    names = {key: set(re.findall(r"\{(\w+)\}", text)) for key, text in one.items()}
    assert names == {key: set(re.findall(r"\{(\w+)\}", text)) for key, text in other.items()}
    assert sections("paged-attention", "en").keys() == sections("paged-attention", "zh").keys()
    assert {"refused-nobody", "refused-gone", "refused-not-running", "refused-many"} <= one.keys()


def test_chinese_punctuation_is_full_width():
    texts = [*strings("paged-attention", "zh").values(), *sections("paged-attention", "zh").values()]
    assert not [text for text in texts if re.search(r"[\u4e00-\u9fff][,:;!?]|[,:;!?][\u4e00-\u9fff]", text)]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_conditions_are_all_there(lang):
    quoted = sections("paged-attention", lang)["quoted"].replace(" %", "%").replace("％", "%")
    for condition in ("20.4", "38.2", "OPT", "A100", "Orca", "FasterTransformer", "2023"):
        assert condition in quoted
    limits = sections("paged-attention", lang)["limits"]
    for system in ("SGLang", "TensorRT-LLM", "GQA", "vLLM"):
        assert system in limits
