"""One sentence read by the live model: its tokens, every head's attention, and how the model goes on by itself."""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from explorer.errors import InputError
from explorer.measuring.gpu import gpu

if TYPE_CHECKING:
    from explorer.engine.model import Model
    from explorer.engine.trace import PromptTrace

MAX_TOKENS = 64
MAX_CHARS = 1000
NEW_TOKENS = 8


@dataclass(frozen=True)
class Piece:
    """One token as it can be shown.

    Attributes:
        token_id: its number in the vocabulary.
        text: its text, or None if its bytes are not whole characters (a part of an emoji, of a Chinese character).
        chars: then the characters that its bytes belong to, as far as they are known; else "".
        hex: its bytes, "F0 9F".
    """

    token_id: int
    text: str | None
    chars: str
    hex: str


@dataclass(frozen=True)
class Reading:
    """What the model made of one sentence.

    Attributes:
        text: the sentence.
        model: name, dtype and device of the model, and bytes that one token adds to its cache.
        prompt: the sentence's tokens.
        generated: the tokens that follow, chosen greedily; at most `NEW_TOKENS`.
        cache_bytes: for each generated token, the bytes of the cache's tensors when it was chosen: first the prompt's,
            then one token more each time.
        trace: every head's Queries, Keys, Values and outputs.
    """

    text: str
    model: dict[str, Any]
    prompt: tuple[Piece, ...]
    generated: tuple[Piece, ...]
    cache_bytes: tuple[int, ...]
    trace: "PromptTrace"


def check_text(text: Any) -> str:
    """`text` if it can be given to a tokenizer.

    Raises:
        InputError: it is not text, empty, too long or broken.
    """
    if not isinstance(text, str):
        raise InputError("the sentence must be text", "句子应为文本")
    if not text.strip():
        raise InputError("the sentence is empty; type a few words", "句子是空的；请输入几个词")
    if len(text) > MAX_CHARS:
        raise InputError(
            f"the sentence has {len(text):,} characters; at most {MAX_TOKENS} tokens fit, about 250 English characters",
            f"句子有 {len(text):,} 个字符；最多 {MAX_TOKENS} 个 token，大约 30 个汉字或 250 个英文字符",
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(
            "the sentence holds half of a character (a lone surrogate); delete it and type it again",
            "句子里有半个字符（孤立的代理项）；请删掉它重新输入",
        ) from None
    return text


def tokens_of(tokenizer: Any, text: str) -> list[int]:
    """The sentence's token ids.

    Raises:
        InputError: fewer than 2, so that nobody can look back, or more than `MAX_TOKENS`.
    """
    ids: list[int] = tokenizer(text)["input_ids"]
    if len(ids) < 2:
        raise InputError(
            "this sentence is a single token; a second one is needed to look back at it",
            "这个句子只有一个 token；至少要有两个，才有历史可看",
        )
    if len(ids) > MAX_TOKENS:
        raise InputError(
            f"this sentence has {len(ids)} tokens; at most {MAX_TOKENS} fit here: shorten it",
            f"这个句子有 {len(ids)} 个 token；这里最多 {MAX_TOKENS} 个，请缩短",
        )
    return ids


@gpu(duration=15)
def read(text: str) -> Reading:
    """Run the sentence through the model, once for the trace and once to go on from it.

    Raises:
        InputError: see `check_text` and `tokens_of`.
        ExplorerError: the model cannot be loaded.
    """
    from explorer.engine.model import DTYPES
    from explorer.engine.runtime import get_model
    from explorer.engine.trace import trace_prompt

    model = get_model()
    ids = tokens_of(model.tokenizer, text)
    new_ids, cache_bytes = go_on(model, ids)
    pieces = pieces_of(model.tokenizer, [*ids, *new_ids])
    facts = {
        "name": model.config.name,
        "dtype": model.dtype,
        "device": str(model.device),
        "element_bytes": DTYPES[model.dtype].itemsize,
        "bytes_per_token": model.config.cache_bytes_per_token(DTYPES[model.dtype].itemsize),
    }
    return Reading(text, facts, pieces[: len(ids)], pieces[len(ids) :], cache_bytes, trace_prompt(model, ids))


def go_on(model: "Model", ids: list[int]) -> tuple[list[int], tuple[int, ...]]:
    """The next tokens by greedy choice, and the bytes in the cache at the moment when each was chosen.

    The store has blocks of one token, so that the bytes in use are those of the cached tokens and nothing else.
    """
    from explorer.engine.generate import SamplingParams, generate

    stop = model.tokenizer.eos_token_id
    # One token more than shown: with the last one the store is emptied before its bytes could be read.
    sampling = SamplingParams(NEW_TOKENS + 1, stop_token_ids=() if stop is None else (stop,))
    store = model.paged_store(len(ids) + NEW_TOKENS + 1, block_size=1)
    new_ids, sizes = [], []
    for token in generate(model, ids, sampling, store):
        if token.finish:
            break
        new_ids.append(token.token_id)
        sizes.append(store.stored_bytes)
    return new_ids, tuple(sizes)


def pieces_of(tokenizer: Any, ids: list[int]) -> tuple[Piece, ...]:
    """The tokens as they can be shown; bytes that make no whole character name the characters that they belong to."""
    parts = [_bytes_of(tokenizer, token_id) for token_id in ids]
    whole, pieces, start = b"".join(parts), [], 0
    for token_id, part in zip(ids, parts, strict=True):
        end = start + len(part)
        text, chars = _decoded(part), ""
        if text is None:
            chars = _around(whole, start, end).strip()
        pieces.append(Piece(token_id, text, chars, part.hex(" ").upper()))
        start = end
    return tuple(pieces)


def _decoded(part: bytes) -> str | None:
    try:
        return part.decode()
    except UnicodeDecodeError:
        return None


def _around(whole: bytes, start: int, end: int) -> str:
    """The characters of which `whole[start:end]` holds bytes; an incomplete one is left out."""
    while start > 0 and whole[start] & 0xC0 == 0x80:
        start -= 1
    while end < len(whole) and whole[end] & 0xC0 == 0x80:
        end += 1
    return whole[start:end].decode(errors="ignore")


def _bytes_of(tokenizer: Any, token_id: int) -> bytes:
    """The bytes of one token, whatever the tokenizer's alphabet: byte-level, or pieces with bytes as <0xF0>."""
    word = tokenizer.convert_ids_to_tokens(token_id)
    if word in tokenizer.all_special_tokens or word is None:
        return (word or "").encode()
    alphabet = byte_alphabet()
    if _is_byte_level(tokenizer) and all(char in alphabet for char in word):
        return bytes(alphabet[char] for char in word)
    if len(word) == 6 and word.startswith("<0x") and word.endswith(">"):
        return bytes.fromhex(word[3:5])
    return str(word).replace("▁", " ").encode()


def _is_byte_level(tokenizer: Any) -> bool:
    return "ByteLevel" in repr(getattr(tokenizer.backend_tokenizer, "decoder", None))


@lru_cache(maxsize=1)
def byte_alphabet() -> dict[str, int]:
    """The 256 characters that stand for bytes in byte-level vocabularies (Radford et al. 2019, GPT-2)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}
