"""One decode step of Multi-head Latent Attention over a paged cache of latents, without ever expanding them.

The cache holds one row per token, shared by all heads: the latent c (after its norm) and a small Key part that carries
the position (after RoPE). A head's score q_nope . (W_uk c) equals (W_uk^T q_nope) . c, so W_uk is absorbed into the
Query once, and attention runs over the rows themselves, as with a single KV head: Keys are the whole row, Values its
first `latent_dim` numbers. W_uv is applied once to what comes out (`kernels.mla_projection` does both).

One program takes 16 heads of one sequence and one split of its tokens; splits are merged by their log-sum-exps.
Source: DeepSeek-V2 2024, arXiv:2405.04434, section 2.1 and appendix C; cache row as in FlashMLA.
"""

import torch
from torch import Tensor

from kernels._dot import dot
from kernels._triton import AotCase, can_launch, jit, launch, padded, tl
from kernels.merge_states import merge_states
from kernels.mla_torch import attend_latents, check_latents

LOG2_E = 1.4426950408889634
HEADS = 16  # heads of one program: the smallest side of a tensor core's product
# Tokens of one tile: 576-wide rows in bf16 take 36 KiB, and a second tile is on its way; sm_120 has 99 KiB.
TOKENS, TOKENS_FP32 = 32, 16
MIN_SPLIT_TOKENS = 256  # a shorter split is not worth its merge


def mla_decode_reference(
    q_latent: Tensor, q_rope: Tensor, latent_cache: Tensor, block_table: Tensor, kv_lens: Tensor, scale: float
) -> tuple[Tensor, Tensor]:
    """What `mla_decode` computes with `return_lse`, sequence by sequence and head by head in float32."""
    latent_dim = q_latent.shape[2]
    block_size = latent_cache.shape[1]
    out = torch.zeros(q_latent.shape)
    lse = torch.zeros(q_latent.shape[:2])
    for s, kv_len in enumerate(kv_lens.tolist()):
        places = [(int(block_table[s, t // block_size]), t % block_size) for t in range(kv_len)]
        rows = torch.stack([latent_cache[block, offset].float().cpu() for block, offset in places])
        for h in range(q_latent.shape[1]):
            query = torch.cat([q_latent[s, h], q_rope[s, h]]).float().cpu()
            scores = rows @ query * scale
            out[s, h], lse[s, h] = scores.softmax(0) @ rows[:, :latent_dim], scores.logsumexp(0)
    return out.to(q_latent.device), lse.to(q_latent.device)


@jit(do_not_specialize=("max_blocks", "num_splits"))
def _mla_decode_kernel(
    q_latent_ptr, q_rope_ptr, cache_ptr, block_table_ptr, kv_lens_ptr, out_ptr, lse_ptr, scale_log2, max_blocks,
    num_splits, NUM_HEADS: tl.constexpr, LATENT_DIM: tl.constexpr, LATENT_PAD: tl.constexpr,
    ROPE_DIM: tl.constexpr, ROPE_PAD: tl.constexpr, BLOCK_SIZE: tl.constexpr, BLOCK_H: tl.constexpr,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    split = tl.program_id(2)
    seq = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    kv_len = tl.load(kv_lens_ptr + seq)
    c = tl.arange(0, LATENT_PAD)
    r = tl.arange(0, ROPE_PAD)
    in_head = head < NUM_HEADS
    row = seq * NUM_HEADS + head
    q_mask = in_head[:, None] & (c < LATENT_DIM)[None, :]
    q_latent = tl.load(q_latent_ptr + row[:, None] * LATENT_DIM + c[None, :], mask=q_mask, other=0.0)
    r_mask = in_head[:, None] & (r < ROPE_DIM)[None, :]
    q_rope = tl.load(q_rope_ptr + row[:, None] * ROPE_DIM + r[None, :], mask=r_mask, other=0.0)

    m = tl.full([BLOCK_H], float("-inf"), tl.float32)
    z = tl.zeros([BLOCK_H], tl.float32)
    acc = tl.zeros([BLOCK_H, LATENT_PAD], tl.float32)
    run = tl.cdiv(tl.cdiv(kv_len, BLOCK_N), num_splits) * BLOCK_N  # whole tiles, by this sequence's own length
    first = split * run
    last = tl.minimum(first + run, kv_len)
    for start in range(first, last, BLOCK_N):
        token = start + tl.arange(0, BLOCK_N)
        live = token < last
        block = tl.load(block_table_ptr + seq * max_blocks + token // BLOCK_SIZE, mask=live, other=0).to(tl.int64)
        base = (block * BLOCK_SIZE + token % BLOCK_SIZE) * (LATENT_DIM + ROPE_DIM)
        latent_mask = live[:, None] & (c < LATENT_DIM)[None, :]
        latent = tl.load(cache_ptr + base[:, None] + c[None, :], mask=latent_mask, other=0.0)
        rope_mask = live[:, None] & (r < ROPE_DIM)[None, :]
        rope = tl.load(cache_ptr + base[:, None] + LATENT_DIM + r[None, :], mask=rope_mask, other=0.0)
        scores = dot(q_latent, tl.trans(latent), tl.zeros([BLOCK_H, BLOCK_N], tl.float32))
        scores = dot(q_rope, tl.trans(rope), scores) * scale_log2
        scores = tl.where(live[None, :], scores, float("-inf"))
        m_new = tl.maximum(m, tl.max(scores, 1))  # finite: each tile holds a live token
        p = tl.exp2(scores - m_new[:, None])
        shrink = tl.exp2(m - m_new)
        z = z * shrink + tl.sum(p, 1)
        acc = dot(p.to(latent.dtype), latent, acc * shrink[:, None])  # the same tile serves as Keys and as Values
        m = m_new
    empty = first >= last
    z = tl.where(empty, 1.0, z)
    lse = tl.where(empty, float("-inf"), (m + tl.log2(z)) * 0.6931471805599453)  # log 2: natural logarithm
    place = split * tl.num_programs(0).to(tl.int64) * NUM_HEADS + row  # [splits, num_seqs, num_heads]
    tl.store(out_ptr + place[:, None] * LATENT_DIM + c[None, :], acc / z[:, None], mask=q_mask)
    tl.store(lse_ptr + place, lse, mask=in_head)


def mla_decode(
    q_latent: Tensor,
    q_rope: Tensor,
    latent_cache: Tensor,
    block_table: Tensor,
    kv_lens: Tensor,
    *,
    scale: float,
    num_splits: int | None = None,
    return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Attention of one new token per sequence over its latents.

    Args:
        q_latent: W_uk^T q_nope, [num_seqs, num_heads, latent_dim], fp16, bf16 or fp32.
        q_rope: the Queries' part with RoPE, [num_seqs, num_heads, rope_dim].
        latent_cache: [num_blocks, block_size, latent_dim + rope_dim], contiguous: latent, then the Key's RoPE part.
        block_table: int32 or int64 block ids, [num_seqs, max_blocks]; entries past a sequence's end are not read.
        kv_lens: int32 or int64 [num_seqs], tokens that each Query sees, each at least 1.
        scale: factor on the scores; (nope_dim + rope_dim) ** -0.5 in DeepSeek's models.
        num_splits: programs that share a sequence's tokens (Triton only); None for what fills the GPU.
        return_lse: also return the log-sum-exp.

    Returns:
        [num_seqs, num_heads, latent_dim] like `q_latent`: apply W_uv to it. With `return_lse` also the natural
        log-sum-exp of the scores, [num_seqs, num_heads] float32.

    Raises:
        ValueError: shapes, layouts or lengths that do not fit.
    """
    check_latents(q_latent, q_rope, latent_cache, block_table, kv_lens)
    if num_splits is not None and num_splits < 1:
        raise ValueError(f"num_splits={num_splits}: expected at least 1")
    if not can_launch(q_latent):
        out, lse = attend_latents(q_latent, q_rope, latent_cache, block_table, kv_lens, scale)
    else:
        out, lse = _launch(q_latent, q_rope, latent_cache, block_table, kv_lens, scale, num_splits)
    return (out, lse) if return_lse else out


def _launch(
    q_latent: Tensor, q_rope: Tensor, latent_cache: Tensor, block_table: Tensor, kv_lens: Tensor, scale: float,
    num_splits: int | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    num_seqs, num_heads, latent_dim = q_latent.shape
    block_size = latent_cache.shape[1]
    capacity = block_table.shape[1] * block_size
    head_groups = -(-num_heads // HEADS)
    if num_splits is None:
        chip = torch.cuda.get_device_properties(q_latent.device).multi_processor_count if q_latent.is_cuda else 1
        num_splits = max(1, min(-(-2 * chip // max(1, num_seqs * head_groups)), capacity // MIN_SPLIT_TOKENS))
    shape = (num_splits, num_seqs, num_heads)
    out = torch.empty(*shape, latent_dim, dtype=torch.float32, device=q_latent.device)
    lse = torch.empty(shape, dtype=torch.float32, device=q_latent.device)
    if num_seqs:
        launch(
            _mla_decode_kernel, (num_seqs, head_groups, num_splits), q_latent.contiguous(), q_rope.contiguous(),
            latent_cache, block_table, kv_lens, out, lse, scale * LOG2_E, block_table.shape[1], num_splits,
            **_constants(num_heads, latent_dim, q_rope.shape[2], block_size), **_schedule(q_latent.element_size()),
        )  # fmt: skip
    if num_splits == 1:
        return out[0].to(q_latent.dtype), lse[0]
    return merge_states(out, lse, q_latent.dtype)


def _constants(num_heads: int, latent_dim: int, rope_dim: int, block_size: int) -> dict[str, int]:
    return {
        "NUM_HEADS": num_heads,
        "LATENT_DIM": latent_dim,
        "LATENT_PAD": padded(latent_dim),
        "ROPE_DIM": rope_dim,
        "ROPE_PAD": padded(rope_dim),
        "BLOCK_SIZE": block_size,
        "BLOCK_H": HEADS,
    }


def _schedule(element_bytes: int) -> dict[str, int]:
    if element_bytes == 2:
        return {"BLOCK_N": TOKENS, "num_warps": 4, "num_stages": 2}
    return {"BLOCK_N": TOKENS_FP32, "num_warps": 8, "num_stages": 1}


def _case(
    num_heads: int, latent_dim: int, rope_dim: int, block_size: int, kind: str, integer: str = "i32"
) -> AotCase:  # fmt: skip
    types = {f"{name}_ptr": f"*{kind}" for name in ("q_latent", "q_rope", "cache")}
    how = _schedule(4 if kind == "fp32" else 2)
    types |= {"block_table_ptr": f"*{integer}", "kv_lens_ptr": f"*{integer}", "out_ptr": "*fp32", "lse_ptr": "*fp32"}
    return AotCase(
        kernel=_mla_decode_kernel,
        label=f"{num_heads} heads, {latent_dim} + {rope_dim}, block {block_size}, {kind}, {integer}",
        types=types | {"scale_log2": "fp32", "max_blocks": "i32", "num_splits": "i32"},
        constants=_constants(num_heads, latent_dim, rope_dim, block_size) | {"BLOCK_N": how["BLOCK_N"]},
        num_warps=how["num_warps"],
        num_stages=how["num_stages"],
    )


AOT_CASES = (
    _case(128, 512, 64, 64, "bf16"),
    _case(16, 512, 64, 16, "fp16"),
    _case(16, 512, 64, 16, "fp32"),
    _case(8, 48, 16, 8, "fp32", "i64"),
)
