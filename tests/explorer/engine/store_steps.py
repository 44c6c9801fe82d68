"""The same steps through a paged and a contiguous store; run here and in Triton's interpreter."""

import torch

from explorer.engine.config import ModelConfig
from explorer.engine.stores.contiguous import ContiguousStore
from explorer.engine.stores.paged import PagedStore

CPU = torch.device("cpu")
# A whole prompt, a second chunk beside a new prompt, decode alone, decode beside prefill, decode of all.
STEPS = ([(0, 20)], [(0, 7), (1, 30)], [(0, 1)], [(0, 1), (2, 5)], [(0, 1), (1, 1), (2, 1)], [(2, 1), (0, 1), (1, 1)])


def outputs(settings, block_size):
    """What both stores answer, step by step and layer by layer.

    Args:
        settings: a `config.json`.
        block_size: of the paged store.

    Returns:
        (paged, contiguous), lists of tensors, and the paged store's implementation.
    """
    torch.manual_seed(0)
    config = ModelConfig.from_hf(settings, "tiny")
    paged = PagedStore(config, torch.float32, CPU, num_blocks=64, block_size=block_size)
    stores = [paged, ContiguousStore(config, torch.float32, CPU, capacity=64, batch=4)]
    answers = [[], []]
    for chunks in STEPS:
        seqs, q_lens = [seq for seq, _ in chunks], [n for _, n in chunks]
        steps = [store.begin(seqs, q_lens) for store in stores]
        for layer in range(config.num_layers):
            wide = torch.randn(sum(q_lens), config.num_heads + 2 * config.num_kv_heads, config.head_dim)
            q, k, v = wide.split((config.num_heads, config.num_kv_heads, config.num_kv_heads), dim=1)
            for store, step, found in zip(stores, steps, answers, strict=True):
                found.append(store.attend(layer, q, k, v, step))
        for store, step in zip(stores, steps, strict=True):
            store.end(step)
    return answers, paged.implementation
