"""Requests as the model really answers them: prompts of mixed length, answers that end where the model ends them."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from explorer.engine.generate import generate_batch
from explorer.engine.model import Model
from explorer.engine.sampler import SamplingParams

QUESTIONS = (
    "Name three rivers.",
    "What is 17 plus 25?",
    "Write a haiku about rain on a tin roof.",
    "Explain in two sentences why the sky is blue.",
    "Give me a packing list for a weekend in the mountains.",
    "Translate 'good morning' into French.",
    "Who wrote the play Hamlet?",
    "List five uses for an old newspaper.",
    "Write a short story about a lighthouse keeper who finds a message in a bottle.",
    "What is the difference between a list and a tuple in Python?",
    "Is a tomato a fruit or a vegetable?",
    "Describe how a bicycle stays upright while it moves.",
    "Give one word that rhymes with 'light'.",
    "Plan a simple dinner for four people, with a shopping list.",
    "Why do leaves change colour in autumn?",
    "Write a polite message that declines an invitation.",
)
DOCUMENT = (
    "The tide tables for the small harbour are printed once a year. Fishermen read them in the evening and decide "
    "when to leave. A table lists the times of high and low water and the height that is expected. Wind from the "
    "west raises the water, and high pressure lowers it, so the printed height is only a first guess. On the quay "
    "there is a staff with marks every ten centimetres; whoever wants to know looks there. "
)


@dataclass(frozen=True)
class Request:
    """One request, in tokens.

    Attributes:
        prompt: tokens that it brings.
        output: tokens that it gets; the last one is never written to the cache.
    """

    prompt: int
    output: int

    @property
    def final(self) -> int:
        """Tokens in the cache when it ends."""
        return self.prompt + self.output - 1


def prompts(model: Model, count: int) -> list[list[int]]:
    """Token ids of `count` chat prompts: the questions in turn, some of them after a passage of one to eight parts."""
    found = []
    for i in range(count):
        question = QUESTIONS[i % len(QUESTIONS)]
        passage = DOCUMENT * (1 << (i // 3 % 4)) if i % 3 == 2 else ""
        found.append(chat(model, f"{passage}\n{question}" if passage else question))
    return found


def chat(model: Model, text: str) -> list[int]:
    """A user's turn as this model wants it; the text alone for a model without a chat template."""
    if not getattr(model.tokenizer, "chat_template", None):
        return list(model.tokenizer(text).input_ids)
    turns = [{"role": "user", "content": text}]
    whole = model.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    return list(model.tokenizer(whole, add_special_tokens=False).input_ids)


@torch.inference_mode()
def answer(model: Model, asked: list[list[int]], max_new_tokens: int, seed: int) -> Iterator[tuple[int, int]]:
    """Let the model answer, sampled at temperature 1.

    Args:
        model: what runs.
        asked: prompts, as token ids.
        max_new_tokens: where an answer is cut off.
        seed: of the sampling.

    Yields:
        (index of the prompt, tokens of its answer so far), with every token.
    """
    stop = (model.tokenizer.eos_token_id,) if model.tokenizer.eos_token_id is not None else ()
    sampling = SamplingParams(max_new_tokens, temperature=1.0, seed=seed, stop_token_ids=stop)
    blocks = sum(-(-(len(ids) + max_new_tokens) // 16) for ids in asked)
    lengths = dict.fromkeys(range(len(asked)), 0)
    for token in generate_batch(model, asked, sampling, model.paged_store(-(-blocks // 32) * 32)):
        lengths[token.seq] += 1
        yield token.seq, lengths[token.seq]
