"""Prompts in, tokens out: prefill in chunks, then one token of every sequence at a time, with streaming text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from explorer.engine.graphs import DecodeStepper
from explorer.engine.model import Model
from explorer.engine.sampler import Sampler, SamplingParams
from explorer.engine.stores.base import KVStore
from explorer.errors import InputError

CHUNK_LEN = 512


@dataclass(frozen=True)
class GeneratedToken:
    """One new token.

    Attributes:
        seq: which prompt it continues (its index).
        token_id: the token.
        text: the text that became certain with it ("" inside a multi-byte character).
        finish: "" while the sequence goes on, else "stop" (a stop token) or "length".
    """

    seq: int
    token_id: int
    text: str
    finish: str


class TextStream:
    """Turns tokens into text as they come; a character whose bytes are not complete waits.

    Args:
        tokenizer: a Hugging Face tokenizer.
    """

    def __init__(self, tokenizer: Any):
        self.tokenizer = tokenizer
        self.token_ids: list[int] = []
        self.shown = 0  # characters of the pending tokens' text that were given out

    def push(self, token_id: int) -> str:
        """The text that this token adds."""
        self.token_ids.append(token_id)
        text = self.tokenizer.decode(self.token_ids)
        if text.endswith("\ufffd") and len(self.token_ids) < 32:
            return ""
        new = text[self.shown :]
        if text.endswith("\n") or len(self.token_ids) >= 32:
            # Start afresh, so that a long text is not decoded again for each token; the last token stays as context.
            self.token_ids = self.token_ids[-1:]
            self.shown = len(self.tokenizer.decode(self.token_ids))
        else:
            self.shown = len(text)
        return new


def prefill(
    model: Model, store: KVStore, prompts: Mapping[int, Sequence[int]], chunk_len: int = CHUNK_LEN
) -> Iterator[dict[int, Tensor]]:
    """Fill the store with prompts, at most `chunk_len` tokens in one forward pass, several prompts packed together.

    Args:
        model: what runs.
        store: where Keys and Values go; sequences may already hold tokens.
        prompts: token ids by sequence id, each at least one.
        chunk_len: tokens in one pass.

    Yields:
        After each pass the next-token logits [vocab_size] of the sequences whose prompt is complete with it.
    """
    left = {seq: list(ids) for seq, ids in prompts.items()}
    while left:
        take: dict[int, list[int]] = {}
        room = chunk_len
        for seq in list(left):
            if room == 0:
                break
            take[seq], left[seq] = left[seq][:room], left[seq][room:]
            room -= len(take[seq])
        step = store.begin(list(take), [len(ids) for ids in take.values()])
        token_ids = torch.tensor([t for ids in take.values() for t in ids], device=model.device)
        logits = model.decoder.forward(token_ids, step, store)
        complete = {seq: logits[i] for i, seq in enumerate(take) if not left[seq]}
        left = {seq: ids for seq, ids in left.items() if ids}
        yield complete


def check_prompt(model: Model, prompt_ids: Sequence[int], max_new_tokens: int) -> None:
    """Raise `InputError` if a prompt is empty, holds unknown tokens or does not fit the model's context."""
    limit = model.config.max_positions
    if not prompt_ids:
        raise InputError("the prompt is empty; expected at least 1 token", "提示词为空；至少需要 1 个 token")
    if len(prompt_ids) + max_new_tokens > limit:
        raise InputError(
            f"{len(prompt_ids):,} + {max_new_tokens:,} tokens exceed the model's context of {limit:,}",
            f"{len(prompt_ids):,} + {max_new_tokens:,} 个 token 超过了模型的上下文长度 {limit:,}",
        )
    if not 0 <= min(prompt_ids) <= max(prompt_ids) < model.config.vocab_size:
        raise InputError(
            f"token ids must lie between 0 and {model.config.vocab_size - 1}",
            f"token id 应在 0 到 {model.config.vocab_size - 1} 之间",
        )


@torch.inference_mode()
def generate_batch(
    model: Model,
    prompts: Sequence[Sequence[int]],
    sampling: SamplingParams,
    store: KVStore | None = None,
    chunk_len: int = CHUNK_LEN,
) -> Iterator[GeneratedToken]:
    """Continue several prompts together; sequences of any length mix, and each ends on its own.

    Args:
        model: what runs.
        prompts: token ids of each prompt.
        sampling: how tokens are chosen.
        store: where Keys and Values go; a contiguous one of the right size if None.
        chunk_len: tokens in one prefill pass.

    Yields:
        Tokens as they come. The last sampled token of a sequence is never written to the store.
    """
    for prompt in prompts:
        check_prompt(model, prompt, sampling.max_new_tokens)
    if store is None:
        store = model.contiguous_store(max(map(len, prompts)) + sampling.max_new_tokens, len(prompts))
    sampler = Sampler(sampling, model.device)
    stepper = DecodeStepper(model.decoder, store)
    texts = [TextStream(model.tokenizer) for _ in prompts]
    count = dict.fromkeys(range(len(prompts)), 0)
    current: dict[int, int] = {}

    def accept(chosen: dict[int, int]) -> Iterator[GeneratedToken]:
        for seq, token_id in chosen.items():
            count[seq] += 1
            finish = "length" if count[seq] == sampling.max_new_tokens else ""
            finish = "stop" if token_id in sampling.stop_token_ids else finish
            if finish:
                current.pop(seq, None)
                store.free(seq)
            else:
                current[seq] = token_id
            yield GeneratedToken(seq, token_id, texts[seq].push(token_id), finish)

    try:
        for complete in prefill(model, store, dict(enumerate(prompts)), chunk_len):
            if complete:
                tokens = sampler(torch.stack(list(complete.values()))).tolist()
                yield from accept(dict(zip(complete, tokens, strict=True)))
        while current:
            seqs = list(current)
            tokens = sampler(stepper(seqs, list(current.values()))).tolist()
            yield from accept(dict(zip(seqs, tokens, strict=True)))
    finally:
        for seq in range(len(prompts)):
            store.free(seq)


def generate(
    model: Model, prompt_ids: Sequence[int], sampling: SamplingParams, store: KVStore | None = None
) -> Iterator[GeneratedToken]:
    """Continue one prompt; see `generate_batch`."""
    yield from generate_batch(model, [prompt_ids], sampling, store)
