"""Tokens to measure with, and transformers' own model as rival and oracle."""

from collections.abc import Sequence
from typing import Any

import torch

from explorer.engine.model import DTYPES, Model

PROMPTS = (
    "A lighthouse keeper writes down the weather every evening. Tonight the wind turned north, the gulls went quiet, "
    "and a ship without lights passed close to the rocks. He lit the second lamp and waited. In the morning he found",
    "To bake bread you need flour, water, salt and yeast. Mix them, let the dough rest until it has doubled, fold it "
    "twice, and bake it in a very hot oven. The crust is done when",
    "The capital of France is Paris. The capital of Italy is Rome. The capital of Japan is Tokyo. The capital of",
)


def prompt_tokens(model: Model, count: int, start: int = 0) -> list[int]:
    """`count` tokens of plain English, the prompts above said again as often as needed.

    Args:
        model: whose tokenizer.
        count: tokens wanted.
        start: skip so many first, so that sequences differ.
    """
    once = model.tokenizer("\n\n".join(PROMPTS) + "\n\n").input_ids
    return [once[(start + i) % len(once)] for i in range(count)]


class Rival:
    """The same weights in transformers, with its own cache, run through its own `generate`.

    Args:
        model: whose files, dtype and device are used.
    """

    def __init__(self, model: Model):
        import transformers

        transformers.utils.logging.disable_progress_bar()
        loader: Any = transformers.AutoModelForCausalLM
        network = loader.from_pretrained(model.files.path, dtype=DTYPES[model.dtype], local_files_only=True)
        self.network = network.to(model.device).eval()
        self.device = model.device
        self.cache: Any = None
        self.token_ids: list[int] = []

    def logits(self, token_ids: Sequence[int]) -> torch.Tensor:
        """Logits of every position, [tokens, vocab_size], without a cache."""
        ids = torch.tensor([list(token_ids)], device=self.device)
        return self.network(ids, use_cache=False).logits[0]

    def greedy(self, token_ids: Sequence[int], new_tokens: int) -> list[int]:
        """The greedy continuation by `generate`, exactly `new_tokens` long."""
        ids = torch.tensor([list(token_ids)], device=self.device)
        out = self.network.generate(ids, attention_mask=torch.ones_like(ids), **_greedy(new_tokens))
        return out[0, len(token_ids) :].tolist()

    def extend_to(self, token_ids: Sequence[int]) -> None:
        """Hold all but the last of these tokens in the cache; they must continue what it holds."""
        import transformers

        if self.cache is None:
            self.cache = transformers.DynamicCache(config=self.network.config)
        held = self.cache.get_seq_length()
        self.token_ids = list(token_ids)
        new = torch.tensor([self.token_ids[held:-1]], device=self.device)
        if new.shape[1]:
            self.network(new, **{_cache_argument(self.network): self.cache}, logits_to_keep=1)

    def continue_greedily(self, new_tokens: int) -> list[int]:
        """`new_tokens` more by `generate` with the cache; the cache is put back to where it was."""
        ids = torch.tensor([self.token_ids], device=self.device)
        held = {_cache_argument(self.network): self.cache}
        out = self.network.generate(ids, attention_mask=torch.ones_like(ids), **held, **_greedy(new_tokens))
        self.cache.crop(-new_tokens)
        return out[0, len(self.token_ids) :].tolist()


def _greedy(new_tokens: int) -> dict[str, Any]:
    return {"do_sample": False, "max_new_tokens": new_tokens, "min_new_tokens": new_tokens}


def _cache_argument(network: Any) -> str:
    """What this transformers calls a forward pass' cache: `past_key_values`, renamed to `cache` in 2026."""
    import inspect

    names = inspect.signature(network.forward).parameters
    return "cache" if "cache" in names else "past_key_values"
