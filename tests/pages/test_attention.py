"""The page "Attention and its cache", without a browser: sentences, tokens, the desk, the answers and the texts."""

import base64
import json
import re
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from explorer.engine import runtime
from explorer.errors import InputError, ResourceError
from explorer.measuring import lock
from explorer.text import LANGUAGES, Text
from pages import attention, attention_answers, attention_desk, attention_payload
from pages._content import sections, strings
from pages._page import Ctx
from pages.attention_desk import Desk, Waiting
from pages.attention_reading import MAX_TOKENS, byte_alphabet, check_text, pieces_of, read, tokens_of


def ctx(lang):
    return Ctx(lang, attention.PAGE, None, (attention.PAGE,))


@pytest.fixture(scope="module")
def bytewise():
    """A byte-level tokenizer without merges: one token a byte."""
    vocab = dict(byte_alphabet())
    inner = Tokenizer(models.BPE(vocab, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=inner)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "must be text"),
        (7, "must be text"),
        ("", "empty"),
        (" \n\t ", "empty"),
        ("a" * 100_000, "100,000 characters"),
        ("half \ud83c of an emoji", "lone surrogate"),
    ],
)
def test_a_sentence_that_cannot_be_read(text, says):
    with pytest.raises(InputError, match=says) as caught:
        check_text(text)
    assert re.search("[\u4e00-\u9fff]", caught.value.text.zh)
    assert "\n" not in caught.value.text.en


@pytest.mark.parametrize(
    "text", ["a word", "🎉🎉", "مرحبا بالعالم", "a\x00\x1b[31mb", "<img src=x onerror=alert(1)>", "${1+1} {{x}}"]
)
def test_a_sentence_that_can_be_read_stays_as_it_is(text):
    assert check_text(text) == text


def test_length_in_tokens(bytewise):
    with pytest.raises(InputError, match="single token"):
        tokens_of(bytewise, "a")
    with pytest.raises(InputError, match="65 tokens"):
        tokens_of(bytewise, "a" * (MAX_TOKENS + 1))
    assert len(tokens_of(bytewise, "a" * MAX_TOKENS)) == MAX_TOKENS


def test_byte_alphabet_is_gpt2s():
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    assert byte_alphabet() == {char: byte for byte, char in bytes_to_unicode().items()}


def test_tokens_that_are_parts_of_characters_name_them(bytewise):
    ids = tokens_of(bytewise, "a 🎉京")
    pieces = pieces_of(bytewise, ids)
    assert [piece.text for piece in pieces[:2]] == ["a", " "]
    assert [(p.text, p.chars, p.hex) for p in pieces[2:6]] == [
        (None, "🎉", "F0"),
        (None, "🎉", "9F"),
        (None, "🎉", "8E"),
        (None, "🎉", "89"),
    ]
    assert {p.chars for p in pieces[6:]} == {"京"}


def test_a_character_that_never_ends_shows_its_bytes_alone(bytewise):
    pieces = pieces_of(bytewise, [0xE4, 0xBA])
    assert [(p.text, p.chars, p.hex) for p in pieces] == [(None, "", "E4"), (None, "", "BA")]


@pytest.fixture
def ready(monkeypatch):
    """The model is there, and nobody else has the device."""
    monkeypatch.setattr(runtime, "status", lambda: runtime.Status("ready", runtime.READY))
    monkeypatch.setattr(lock, "_SHARED", [lock.DeviceLock()])


@pytest.fixture
def desk_of(ready):
    """Makes desks. What one has not read yet is read before the test ends: it would take the next test's device."""
    made = []

    def make(reader):
        made.append(Desk(reader))
        return made[-1]

    yield make
    for desk in made:
        desk._worker.shutdown(wait=True)


@dataclass(frozen=True)
class Read:
    """A stand-in for a reading: the text, and one token a character."""

    prompt: str


def test_each_sentence_is_read_once(desk_of):
    read_texts = []

    def reader(text):
        time.sleep(0.05)
        read_texts.append(text)
        return Read(text)

    desk, got = desk_of(reader), []
    askers = [threading.Thread(target=lambda: got.append(desk.ask("one", patience_s=5))) for _ in range(8)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert got == [Read("one")] * 8 and read_texts == ["one"]
    assert desk.ask("one") == Read("one") and read_texts == ["one"]


def test_only_the_last_sentences_are_kept(desk_of, monkeypatch):
    monkeypatch.setattr(attention_desk, "KEPT_TOKENS", 5)
    read_texts = []
    desk = desk_of(lambda text: read_texts.append(text) or Read(text))
    for text in ("aa", "bb", "aa", "cc", "aa", "bb"):
        assert desk.ask(text, patience_s=5) == Read(text)
    assert read_texts == ["aa", "bb", "cc", "bb"]


def test_a_slow_sentence_is_waited_for_and_comes(desk_of):
    go = threading.Event()
    desk = desk_of(lambda text: go.wait(5) and Read(text))
    assert desk.ask("slow", patience_s=0.05) == Waiting(attention_desk.BUSY)
    go.set()
    assert desk.ask("slow", patience_s=5) == Read("slow")


def test_a_failure_is_told_and_not_kept(desk_of):
    calls = []

    def reader(text):
        calls.append(text)
        raise InputError("no such thing")

    desk = desk_of(reader)
    for _ in range(2):
        with pytest.raises(InputError, match="no such thing"):
            desk.ask("x", patience_s=5)
    assert calls == ["x", "x"]


def test_the_waiting_line_has_an_end(desk_of, monkeypatch):
    monkeypatch.setattr(attention_desk, "MOST_WAITING", 2)
    go = threading.Event()
    desk = desk_of(lambda text: go.wait(5) and Read(text))
    for text in ("a", "b"):
        desk.ask(text, patience_s=0.01)
    with pytest.raises(ResourceError, match="Too many"):
        desk.ask("c", patience_s=0.01)
    go.set()


def test_a_measurement_is_given_way_to_but_not_for_ever(desk_of, monkeypatch):
    monkeypatch.setattr(attention_desk, "GIVE_WAY_S", 0.2)
    measurement = lock.device_lock().take()
    assert measurement.try_acquire()
    start = time.monotonic()
    assert desk_of(Read).ask("x", patience_s=5) == Read("x")
    assert time.monotonic() - start >= 0.2
    assert measurement.held and lock.device_lock().jobs() == 1
    measurement.leave()


def test_the_device_is_held_while_a_sentence_is_read(desk_of):
    held = []
    desk_of(lambda text: held.append(lock.device_lock().jobs()) or Read(text)).ask("x", patience_s=5)
    assert held == [1] and lock.device_lock().jobs() == 0


def test_the_model_is_waited_for(monkeypatch):
    started = []
    monkeypatch.setattr(runtime, "preload", lambda: started.append(1))

    def ask(state, again=False, **more):
        monkeypatch.setattr(runtime, "status", lambda: runtime.Status(state, Text("it says", "它说"), **more))
        return Desk(Read).ask("a sentence", again=again)

    assert isinstance(ask("idle"), Waiting) and started == [1]
    assert "50 %" in ask("loading", done_bytes=50, total_bytes=100).text.zh and started == [1]
    with pytest.raises(Exception, match="it says"):
        ask("failed")
    assert isinstance(ask("failed", again=True), Waiting) and started == [1, 1]


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("question", [None, [], "text", {}, {"text": ["a"]}, {"text": ""}, {"text": "a\udc00b"}])
def test_a_wrong_question_gets_one_line(question, lang):
    for answer in (attention_answers.sentence(question, lang), attention_answers.head(question, lang)):
        assert answer["status"] == "error"
        assert "\n" not in answer["message"]
        assert bool(re.search("[\u4e00-\u9fff]", answer["message"])) == (lang == "zh")
        json.dumps(answer).encode()


def test_an_unforeseen_error_says_nothing_about_this_machine(monkeypatch):
    def broken(_):
        raise RuntimeError("/home/someone/secret")

    monkeypatch.setattr(attention_answers, "_fields", broken)
    assert attention_answers.sentence({}, "en") == {"status": "error", "message": attention_answers.BROKEN.en}


def test_the_servers_functions_have_names_of_their_own():
    assert [f.__name__ for f in attention_answers.answers("en")] == ["read_sentence", "read_head"]


def unpacked(text, *shape):
    return np.frombuffer(base64.b64decode(text), "<f4").reshape(shape)


def test_packed_numbers_keep_minus_infinity():
    numbers = np.array([[1.5, -np.inf], [np.float32(1e-30), 0]])
    assert np.array_equal(unpacked(attention_payload.packed(numbers), 2, 2), numbers.astype("<f4"))


@pytest.fixture(scope="module")
def capital():
    return read(attention.CAPITAL["text"])


@pytest.mark.model
def test_the_first_example_finds_italy(capital):
    """The page's text: layer 16, head 0 puts about nine tenths on "Italy", and the model goes on with Rome."""
    words = [piece.text for piece in capital.prompt]
    weights = capital.trace.layer(16, 0).weights[-1]
    assert words[int(weights.argmax())] == " Italy" and 0.85 < weights.max() < 0.95
    assert capital.generated[0].text == " Rome"


@pytest.mark.model
def test_the_chinese_example_finds_what_followed(capital):
    reading = read(attention.CHINESE["text"])
    weights = reading.trace.layer(18, 6).weights[-1]
    assert reading.prompt[int(weights.argmax())].text == "法" and weights.max() > 0.8
    assert reading.prompt[0].text is None and reading.prompt[0].chars == "巴"


@pytest.mark.model
def test_most_heads_have_a_sink(capital):
    """The page's text: in most layers many heads give the first token half of their weight or more."""
    share = capital.trace.sink_share
    assert ((share > 0.5).sum(axis=1) >= 3).mean() > 0.5


@pytest.mark.model
def test_a_heads_numbers_fit_together(capital):
    answer = attention_payload.head(capital, 16, 8)
    n, d = answer["length"], answer["dim"]
    q, k, v, output = (unpacked(answer[name], n, d) for name in ("q", "k", "v", "output"))
    scores, weights = (unpacked(answer[name], n, n) for name in ("scores", "weights"))
    assert answer["kvHead"] == 2
    below = np.tril(np.ones((n, n), bool))
    assert np.isneginf(scores[~below]).all() and (weights[~below] == 0).all()
    np.testing.assert_allclose(scores[below], (q @ k.T / np.sqrt(d))[below], atol=1e-4)
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-5)
    # The engine works in bf16 (8 bits of precision), twice: the weights are rounded, and so is the sum.
    np.testing.assert_allclose(weights @ v, output, atol=2**-7 * np.abs(v).max())


@pytest.mark.model
def test_the_cache_grows_by_one_tokens_bytes(capital):
    """2 x 30 layers x 3 KV heads x 64 x 2 B = 23,040 B, counted in the store's tensors."""
    count = len(capital.prompt)
    assert len(capital.generated) == 8
    assert list(capital.cache_bytes) == [23_040 * (count + i) for i in range(8)]
    assert attention_payload.sentence(capital)["bytesPerToken"] == 23_040


@pytest.mark.model
@pytest.mark.parametrize(("layer", "head"), [(30, 0), (0, 9), (-1, 0), ("1", 0), (True, 0), (None, None), (1.5, 0)])
def test_a_head_that_is_not_there(capital, layer, head):
    with pytest.raises(InputError):
        attention_payload.head(capital, layer, head)


@pytest.mark.model
@pytest.mark.parametrize(
    "text", ["🎉👩‍👩‍👧‍👦 party", "مرحبا بالعالم", "a\x00\x1b b", "<|im_end|> and on", "\u202egnirts"]
)
def test_odd_sentences_are_read(text):
    answer = attention_payload.sentence(read(text))
    json.dumps(answer).encode()
    assert b"".join(bytes.fromhex(piece["hex"]) for piece in answer["tokens"]).decode() == text


@pytest.mark.parametrize("lang", LANGUAGES)
def test_reserved_and_used_by_hand(lang):
    """200 of 4,096 tokens: 4.9 %; at 23,040 B a token 4.39 MiB of 90 MiB, at 128 KiB 25 MiB of 512 MiB."""
    shown = attention.reserved(ctx(lang))
    for number in ("4.9 %", "95.1 %", "4.39 MiB", "90.00 MiB", "25.00 MiB", "512.00 MiB", "4,096", "200"):
        assert number in shown


def test_both_languages_have_the_same_texts():
    en, zh = strings("attention", "en"), strings("attention", "zh")
    assert en.keys() == zh.keys()
    for key in en:
        names = [sorted(set(re.findall(r"\{(\w+)\}", text[key]))) for text in (en, zh)]
        assert names[0] == names[1], key
    assert sections("attention", "en").keys() == sections("attention", "zh").keys()
