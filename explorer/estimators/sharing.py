"""A common prefix kept once: what that saves in bytes and in prefill, with the blocks that a paged cache shares whole.

The rule is that of vLLM's automatic prefix caching (its design document of that name): only full blocks are shared, and
the last token of a prompt is always computed, because its logits are wanted.
"""

from dataclasses import dataclass

from explorer.errors import InputError
from explorer.estimators.transfer import rate
from explorer.specs.limits import whole


@dataclass(frozen=True)
class Sharing:
    """Requests of one length with a common prefix, kept apart and kept once.

    Attributes:
        requests: how many.
        tokens: tokens of each.
        shared_tokens: tokens of the prefix that lie in full blocks, hence are kept once.
        unshared_prefix_tokens: the rest of the prefix, kept by every request.
        bytes_per_token: of the cache.
        block_size: tokens of a block.
    """

    requests: int
    tokens: int
    shared_tokens: int
    unshared_prefix_tokens: int
    bytes_per_token: int
    block_size: int

    @property
    def apart_bytes(self) -> int:
        """The caches without sharing: tokens only, no unfilled block ends."""
        return self.requests * self.tokens * self.bytes_per_token

    @property
    def shared_bytes(self) -> int:
        """The caches with the prefix kept once: tokens only, no unfilled block ends."""
        return self.prefill_tokens * self.bytes_per_token

    @property
    def saved_bytes(self) -> int:
        """The difference; whole blocks, so it is the same with unfilled block ends counted."""
        return self.apart_bytes - self.shared_bytes

    @property
    def saved_prefill_tokens(self) -> int:
        """Tokens that need no prefill because another request did it."""
        return (self.requests - 1) * self.shared_tokens

    @property
    def prefill_tokens(self) -> int:
        """Tokens that are still prefilled: the prefix once, every other token."""
        return self.requests * self.tokens - self.saved_prefill_tokens

    @property
    def apart_blocks(self) -> int:
        """Blocks handed out without sharing."""
        return self.requests * -(-self.tokens // self.block_size)

    @property
    def shared_blocks(self) -> int:
        """Blocks handed out with the prefix kept once."""
        return self.apart_blocks - (self.requests - 1) * (self.shared_tokens // self.block_size)

    @property
    def tail_bytes(self) -> int:
        """Unfilled ends of the last blocks, the same either way."""
        return (self.apart_blocks * self.block_size - self.requests * self.tokens) * self.bytes_per_token


def share_prefix(bytes_per_token: int, requests: int, tokens: int, prefix: int, block_size: int = 1) -> Sharing:
    """`requests` requests of `tokens` tokens, the first `prefix` of them the same in all.

    Args:
        bytes_per_token: of the cache of one sequence.
        requests: how many; all are there at once, and the prefix is still in the cache.
        tokens: of each request.
        prefix: same token ids at the same positions, same model and adapters; 0 for none.
        block_size: tokens of a block; 1 shares token by token.

    Raises:
        InputError: a value is out of range, or the prefix is longer than a request.
    """
    tokens, requests = whole("tokens", tokens), whole("batch", requests, shown_as="requests")
    prefix = whole("tokens", prefix, shown_as="prefix") if prefix != 0 or isinstance(prefix, bool) else 0
    block_size = whole("tokens", block_size, shown_as="block_size")
    if prefix > tokens:
        raise InputError(
            f"prefix={prefix}: a request has {tokens} tokens; expected at most that",
            f"prefix={prefix}：每条请求只有 {tokens} 个 token，前缀不能更长",
        )
    shared = min(prefix, tokens - 1) // block_size * block_size
    return Sharing(requests, tokens, shared, prefix - shared, rate("bytes_per_token", bytes_per_token), block_size)
