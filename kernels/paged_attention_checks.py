"""What `paged_attention` demands of its arguments. Each refusal names the argument and what would do."""

import torch
from torch import Tensor


def check_tensors(
    q: Tensor, key_pool: Tensor, value_pool: Tensor, block_table: Tensor, kv_lens: Tensor, q_starts: Tensor
) -> None:
    """Raise ValueError unless shapes, types and layouts fit each other."""
    if q.dim() != 3 or key_pool.dim() != 4 or key_pool.shape != value_pool.shape or key_pool.shape[3] != q.shape[2]:
        raise ValueError(
            f"q {tuple(q.shape)}, key_pool {tuple(key_pool.shape)}, value_pool {tuple(value_pool.shape)}: expected "
            "[tokens, num_heads, head_dim] and twice [num_blocks, num_kv_heads, block_size, head_dim]"
        )
    if q.shape[1] % key_pool.shape[1]:
        raise ValueError(f"{q.shape[1]} Query heads cannot share {key_pool.shape[1]} KV heads evenly")
    kinds = {q.dtype, key_pool.dtype, value_pool.dtype}
    if len(kinds) != 1 or not kinds <= {torch.float32, torch.float16, torch.bfloat16}:
        raise ValueError(
            f"q {q.dtype}, key_pool {key_pool.dtype}, value_pool {value_pool.dtype}: expected one dtype, "
            "fp32, fp16 or bf16"
        )
    if not (key_pool.is_contiguous() and value_pool.is_contiguous()):
        raise ValueError("key_pool and value_pool must be contiguous")
    if q.shape[0] and q.stride()[1:] != (q.shape[2], 1):
        raise ValueError(f"q has strides {q.stride()}: a token's heads must lie in one piece")
    num_seqs = block_table.shape[0]
    if block_table.dim() != 2 or kv_lens.shape != (num_seqs,) or q_starts.shape != (num_seqs + 1,):
        raise ValueError(
            f"block_table {tuple(block_table.shape)}, kv_lens {tuple(kv_lens.shape)}, q_starts "
            f"{tuple(q_starts.shape)}: expected [num_seqs, max_blocks], [num_seqs], [num_seqs + 1]"
        )
    for name, table in (("block_table", block_table), ("kv_lens", kv_lens), ("q_starts", q_starts)):
        if table.dtype != torch.int32 or not table.is_contiguous():
            raise ValueError(f"{name} is {table.dtype}: expected contiguous int32")


def check_lengths(q: Tensor, block_table: Tensor, kv_lens: Tensor, q_starts: Tensor, block_size: int) -> None:
    """Raise ValueError unless every sequence's new tokens are among its own, and its table holds them.

    Only where the numbers lie on the CPU: reading them on a GPU would make it wait.
    """
    if q_starts.device.type != "cpu":
        return
    q_lens, capacity = q_starts.diff(), block_table.shape[1] * block_size
    if int(q_starts[0]) or int(q_starts[-1]) != q.shape[0] or bool((q_lens < 0).any()):
        raise ValueError(f"q_starts {q_starts.tolist()}: expected to rise from 0 to {q.shape[0]}, the Queries")
    if bool((kv_lens < q_lens).any()) or bool((kv_lens > capacity).any()):
        raise ValueError(
            f"kv_lens {kv_lens.tolist()}: expected at least the new tokens {q_lens.tolist()} and at most {capacity}, "
            "what the block table can hold"
        )


def check_options(
    q: Tensor, window: int | None, softcap: float | None, sinks: Tensor | None, num_splits: int | None
) -> None:
    """Raise ValueError unless the options make sense."""
    if window is not None and window < 1:
        raise ValueError(f"window={window}: a Query sees at least itself; None for no window")
    if softcap is not None and not softcap > 0:
        raise ValueError(f"softcap={softcap}: must be above 0; None for no cap")
    if sinks is not None and (sinks.shape != q.shape[1:2] or not sinks.is_contiguous()):
        raise ValueError(f"sinks {tuple(sinks.shape)}: expected one logit for each of {q.shape[1]} heads")
    if num_splits is not None and not 1 <= num_splits <= 256:
        raise ValueError(f"num_splits={num_splits}: expected 1 to 256")
