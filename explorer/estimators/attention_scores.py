"""What attention would store and move if it wrote its scores down, against attention that never does.

The naive way is the formula read literally: scores S = Q K^T to memory, softmax reads S and writes P, the last product
reads P. FlashAttention reads Q, K and V in tiles and writes the output, and one log-sum-exp a Query. Dense: no causal
half is skipped. What is moved is counted as the algorithm asks for it; a GPU's L2 cache may serve part of that.
Sources: Dao et al. 2022, arXiv:2205.14135, algorithm 0 and theorem 2; loop order of Dao 2023, arXiv:2307.08691.
"""

from dataclasses import dataclass

from explorer.specs.dtypes import Dtype, dtype_of
from explorer.specs.limits import whole

LSE_BYTES = 4  # fp32, whatever the tensors are
STATE_BYTES = 4  # m, l and u are kept in fp32 too


@dataclass(frozen=True)
class Move:
    """One crossing between memory and chip, for one head of one sequence.

    Attributes:
        name: what crosses and in which direction: "read-qk", "write-s", ...
        num_bytes: how much, in all.
    """

    name: str
    num_bytes: int


@dataclass(frozen=True)
class Attention:
    """One layer's attention: `q_len` Queries of each head look at `kv_len` Keys.

    Attributes:
        q_len: Queries of a sequence: all tokens in prefill, 1 in decode.
        kv_len: Keys that each of them looks at.
        num_heads: Query heads.
        batch: sequences.
        head_dim: numbers of a Query, Key and Value.
        dtype: of the scores and of all tensors.
    """

    q_len: int
    kv_len: int
    num_heads: int = 1
    batch: int = 1
    head_dim: int = 128
    dtype: str | Dtype = "bf16"

    def __post_init__(self) -> None:
        """Check every number.

        Raises:
            InputError: one is out of range; says what would be right.
        """
        for name, limit in (("q_len", "tokens"), ("kv_len", "tokens"), ("num_heads", "num_heads"), ("batch", "batch")):
            whole(limit, getattr(self, name), shown_as=name)
        whole("head_dim", self.head_dim)
        dtype_of(self.dtype)

    @property
    def element_bytes(self) -> int:
        """Bytes of one number."""
        return dtype_of(self.dtype).element_bytes

    @property
    def rows(self) -> int:
        """Queries of all heads and sequences."""
        return self.batch * self.num_heads * self.q_len

    @property
    def head_score_bytes(self) -> int:
        """The scores of one head of one sequence: 32,768 x 32,768 in bf16 are 2 GiB."""
        return self.q_len * self.kv_len * self.element_bytes

    @property
    def score_bytes(self) -> int:
        """The scores of all heads and sequences, held at once; the weights after softmax would be as many again."""
        return self.rows * self.kv_len * self.element_bytes

    @property
    def output_bytes(self) -> int:
        """The output, which both ways write."""
        return self.rows * self.head_dim * self.element_bytes

    @property
    def lse_bytes(self) -> int:
        """One log-sum-exp a Query: for the backward pass, and for joining parts."""
        return self.rows * LSE_BYTES

    @property
    def kept_bytes(self) -> int:
        """All that flash writes: the output and the log-sum-exps."""
        return self.output_bytes + self.lse_bytes

    @property
    def flops(self) -> int:
        """Both matrix products, a multiply-add as two: the same with and without stored scores."""
        return 4 * self.rows * self.kv_len * self.head_dim

    def naive_moves(self) -> tuple[Move, ...]:
        """What the naive way moves for one head of one sequence: 4 passes over the scores, and Q, K, V, O once."""
        query, keys, scores = self._query_bytes, self._key_bytes, self.head_score_bytes
        return (
            Move("read-qk", query + keys),
            Move("write-s", scores),
            Move("read-s", scores),
            Move("write-p", scores),
            Move("read-pv", scores + keys),
            Move("write-o", query),
        )

    def flash_moves(self, block_q: int) -> tuple[Move, ...]:
        """What flash moves for one head of one sequence.

        Args:
            block_q: Queries of a tile. Each tile walks over all Keys and Values, so they are read once a tile. It
                grows with the chip's memory, which is where theorem 2's 1 / M comes from.
        """
        tiles = -(-self.q_len // whole("tokens", block_q, shown_as="block_q"))
        return (
            Move("read-q", self._query_bytes),
            Move("read-kv", tiles * 2 * self._key_bytes),
            Move("write-o", self._query_bytes),
            Move("write-lse", self.q_len * LSE_BYTES),
        )

    def tile_bytes(self, block_q: int) -> int:
        """What a tile of `block_q` Queries holds on the chip from its first block to its last: Queries, u, m and l.

        u, m and l are fp32. A block of Keys, one of Values and their scores come and go on top of it.
        """
        queries = min(self.q_len, whole("tokens", block_q, shown_as="block_q"))
        return queries * (self.head_dim * (self.element_bytes + STATE_BYTES) + 2 * STATE_BYTES)

    @property
    def _query_bytes(self) -> int:
        """One head's Queries; its output is as large."""
        return self.q_len * self.head_dim * self.element_bytes

    @property
    def _key_bytes(self) -> int:
        """One head's Keys; its Values are as large."""
        return self.kv_len * self.head_dim * self.element_bytes


def moved(moves: tuple[Move, ...]) -> int:
    """Bytes of all moves together."""
    return sum(move.num_bytes for move in moves)
