"""The next token from its logits: greedy, or temperature with top-k and top-p."""

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.errors import InputError


@dataclass(frozen=True)
class SamplingParams:
    """How a continuation is chosen and when it ends.

    Attributes:
        max_new_tokens: at most so many tokens.
        temperature: 0 is greedy; larger is flatter.
        top_k: keep the `top_k` likeliest tokens; 0 keeps all.
        top_p: then keep the likeliest whose probabilities add up to at least `top_p` (Holtzman et al. 2019,
            arXiv:1904.09751).
        seed: the random numbers' seed; the same seed gives the same text on the same device.
        stop_token_ids: a token that ends the text (it is still returned).
    """

    max_new_tokens: int = 64
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    stop_token_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _expect(self.max_new_tokens >= 1, "max_new_tokens", self.max_new_tokens, "at least 1", "不小于 1")
        _expect(0 <= self.temperature <= 100, "temperature", self.temperature, "0 to 100", "0 到 100")
        _expect(self.top_k >= 0, "top_k", self.top_k, "at least 0", "不小于 0")
        _expect(0 < self.top_p <= 1, "top_p", self.top_p, "above 0 and at most 1", "大于 0 且不超过 1")


def _expect(holds: bool, name: str, value: float, right: str, right_zh: str) -> None:
    if not holds:
        raise InputError(f"{name}={value}: expected {right}", f"{name}={value}：应{right_zh}")


class Sampler:
    """Chooses tokens for one run; holds its random state.

    Args:
        params: how to choose.
        device: where the logits are.
    """

    def __init__(self, params: SamplingParams, device: torch.device):
        self.params = params
        self.generator = torch.Generator(device).manual_seed(params.seed)

    def __call__(self, logits: Tensor) -> Tensor:
        """[batch, vocab_size] -> int64 [batch]."""
        params = self.params
        if params.temperature == 0:
            return logits.argmax(dim=-1)
        scores = logits.float() / params.temperature
        if 0 < params.top_k < scores.shape[-1]:
            kth = scores.topk(params.top_k, dim=-1).values[:, -1:]
            scores = scores.masked_fill(scores < kth, float("-inf"))
        probabilities = torch.softmax(scores, dim=-1)
        if params.top_p < 1:
            ordered, order = probabilities.sort(dim=-1, descending=True)
            before = ordered.cumsum(dim=-1) - ordered
            ordered = ordered.masked_fill(before >= params.top_p, 0.0)
            probabilities = torch.zeros_like(probabilities).scatter_(-1, order, ordered)
        return torch.multinomial(probabilities, 1, generator=self.generator)[:, 0]
