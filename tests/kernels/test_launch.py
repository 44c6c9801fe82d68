"""What launchers hand to Triton, without a GPU: which device, which grids, and what would make it compile anew."""

import ast
import contextlib
import inspect

import pytest
import torch

from kernels import aot, attention_sums, block_copy, flash_attention, kv_write, merge_states, mla_decode
from kernels import paged_attention as paged
from kernels._triton import HAS_TRITON, INTERPRET, MAX_GRID_YZ, launch

MODULES = [attention_sums, block_copy, flash_attention, kv_write, merge_states, mla_decode, paged]


class Kernel:
    """Stands in for a jitted kernel and keeps what it was started with."""

    arg_names = ("a_ptr", "b_ptr", "n")

    def __init__(self):
        self.started = []

    def __getitem__(self, grid):
        return lambda *args, **constants: self.started.append((grid, args, constants))


def test_a_kernel_starts_on_the_device_of_its_tensors(monkeypatch):
    current = []

    @contextlib.contextmanager
    def device_of(tensor):
        current.append(tensor.device)
        yield
        current.pop()

    class Watched(Kernel):
        def __getitem__(self, grid):
            assert current == [torch.device("meta")]
            return super().__getitem__(grid)

    monkeypatch.setattr(torch.cuda, "device_of", device_of)
    kernel, x = Watched(), torch.ones(2, device="meta")
    launch(kernel, (3, 2), x, x, 5, B=7)
    assert kernel.started == [((3, 2), (x, x, 5), {"B": 7})] and current == []


def test_tensors_on_two_devices_are_refused():
    kernel = Kernel()
    with pytest.raises(ValueError, match="b is on meta: expected cpu"):
        launch(kernel, (1,), torch.ones(1), torch.ones(1, device="meta"), 1)
    assert kernel.started == []


def test_grids_that_no_gpu_takes_are_refused():
    kernel, x = Kernel(), torch.ones(1)
    launch(kernel, (MAX_GRID_YZ + 1, MAX_GRID_YZ, MAX_GRID_YZ), x)
    for grid in ((1, MAX_GRID_YZ + 1), (1, 1, MAX_GRID_YZ + 1)):
        with pytest.raises(ValueError, match="at most 65535"):
            launch(kernel, grid, x)
    assert len(kernel.started) == 1


def test_no_kernel_is_started_in_another_way():
    """`_x_kernel[grid](...)` would start on whatever device is the current one."""
    for path in aot.sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            started = isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)
            assert not started or path.name == "_triton.py", f"{path.name}:{node.lineno} starts a kernel by itself"


@pytest.fixture
def launches(monkeypatch):
    """Launchers take their tensors for a GPU's; nothing runs, what would have been started is kept."""
    if not HAS_TRITON or INTERPRET:
        pytest.skip("needs Triton's compiler, which TRITON_INTERPRET=1 takes away")
    kept = []
    for module in MODULES:
        monkeypatch.setattr(module, "can_launch", lambda tensor: True)
        monkeypatch.setattr(module, "launch", lambda *args, **constants: kept.append((args, constants)))
    return kept


def compiled_for(launched):
    """The arguments' types as Triton's cache of compiled kernels sees them on sm_90: name to type, or to a value."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import make_backend
    from triton.runtime.jit import create_function_from_signature

    (kernel, _, *args), constants = launched
    bind = create_function_from_signature(kernel.signature, kernel.params, make_backend(GPUTarget("cuda", 90, 32)))
    bound, kinds, options = bind(*args, **constants)
    return kernel, dict(zip(bound, kinds, strict=True)), options


def decode_step(batch, kv_len, q_len=1, num_splits=None):
    q, pool = torch.zeros(batch * q_len, 9, 64).bfloat16(), torch.zeros(3, 3, 16, 64).bfloat16()
    table = torch.zeros(batch, -(-kv_len // 16), dtype=torch.int32)
    starts = torch.arange(batch + 1, dtype=torch.int32) * q_len
    lens = torch.full((batch,), kv_len, dtype=torch.int32)
    paged.paged_attention(q, pool, pool, table, lens, q_starts=starts, max_kv_len=kv_len, num_splits=num_splits)


def test_growing_contexts_compile_nothing_new(launches):
    """A kernel that is compiled for each context length or batch stops a server for seconds, again and again."""
    for batch, kv_len in [(1, 300), (1, 600), (1, 1100), (3, 5001), (2, 801), (1, 100_000)]:
        decode_step(batch, kv_len)
    attention, merging = launches[::2], launches[1::2]
    splits = [args[-1] for args, _ in attention]
    assert len(set(splits)) >= 4 and min(splits) > 1, "the number of splits changed, and that is what must not matter"
    for each in (attention, merging):
        assert len(each) == 6
        kinds = [compiled_for(launched) for launched in each]
        assert all(kind == kinds[0] for kind in kinds)


def test_growing_prompts_and_latents_compile_nothing_new(launches):
    for tokens, sliding_window in ((1, 1), (16, 16), (33, 2**40), (160, 100)):
        q, k = torch.zeros(tokens, 9, 64), torch.zeros(tokens, 3, 64)
        cu, window = torch.tensor([0, tokens], dtype=torch.int32), {"sliding_window": sliding_window}
        flash_attention.flash_attention(q, k, k, cu, max_q_len=tokens, **window)
        attention_sums.attention_sums(q, k, torch.zeros(9, tokens), cu, max_kv_len=tokens, **window)
    for blocks, splits in ((1, 1), (16, 2), (100, 7)):
        table, lens = torch.zeros(2, blocks, dtype=torch.int32), torch.full((2,), blocks, dtype=torch.int32)
        mla_decode.mla_decode(
            torch.zeros(2, 4, 48), torch.zeros(2, 4, 16), torch.zeros(3, 8, 64), table, lens, scale=1.0,
            num_splits=splits,
        )  # fmt: skip
    by_kernel = {}
    for launched in launches:
        kernel, *kind = compiled_for(launched)
        by_kernel.setdefault(kernel.__name__, []).append(kind)
    assert {name: len(kinds) for name, kinds in by_kernel.items()} == {
        "_flash_attention_kernel": 4, "_attention_sums_kernel": 4, "_mla_decode_kernel": 3, "_merge_states_kernel": 2,
    }  # fmt: skip
    for name, kinds in by_kernel.items():
        assert all(kind == kinds[0] for kind in kinds), name


def test_a_few_drafts_are_split_as_a_decode_step_is_and_a_prompt_is_not(launches):
    for q_len in (1, 4, 5, 6, 40):
        decode_step(1, 4000, q_len)
    grids = [args[1] for args, _ in launches if args[0].arg_names[0] == "q_ptr"]
    assert [grid[:2] for grid in grids] == [(1, 3 * 6)] * 3 + [(1, 3), (2, 3)], "16 rows hold 5 Queries of 3 heads"


def test_a_ragged_batch_with_as_many_tokens_as_sequences_is_no_decode_step(launches):
    """4 and 0 new tokens of 20 heads each: 4 tiles of one Query are needed, not one."""
    q, pool = torch.zeros(4, 20, 64), torch.zeros(4, 1, 16, 64)
    table, lens = torch.zeros(4, 1, dtype=torch.int32), torch.full((4,), 9, dtype=torch.int32)
    starts = torch.tensor([0, 4, 4, 4, 4], dtype=torch.int32)
    paged.paged_attention(q, pool, pool, table, lens, q_starts=starts)
    assert launches[0][0][1][0] == 4


def test_launchers_that_are_told_the_lengths_read_nothing_back(launches):
    """On a GPU that would make the host wait, and a CUDA graph could not be recorded. Meta tensors cannot be read."""
    with torch.device("meta"):
        q, x, pool = torch.empty(6, 9, 64), torch.empty(6, 3, 64), torch.empty(4, 3, 16, 64)
        starts, lens, table = torch.empty(3).int(), torch.empty(2).int(), torch.empty(2, 2).int()
        kv_write.kv_write(x, x, pool, pool, torch.empty(6).long())
        paged.paged_attention(q, pool, pool, table, lens, q_starts=starts, max_q_len=4, max_kv_len=20, return_lse=True)
        paged.paged_attention(q[:2], pool, pool, table, lens, window=5, num_splits=3)
        flash_attention.flash_attention(q, x, x, starts, max_q_len=4, return_lse=True)
        attention_sums.attention_sums(q, x, torch.empty(9, 6), starts, max_kv_len=4)
        latents = torch.empty(2, 4, 48), torch.empty(2, 4, 16), torch.empty(4, 16, 64)
        mla_decode.mla_decode(*latents, table, lens, scale=1.0, num_splits=3)
    assert len(launches) == 8, "six kernels, and two of them merge their splits"
    with torch.device("meta"), pytest.raises(RuntimeError, match="meta"):
        flash_attention.flash_attention(q, x, x, starts)  # the longest sequence has to be read


def run_shapes():
    """Each launcher at a shape of its AOT_CASES."""
    x, pool, ids = torch.zeros(16, 3, 64).bfloat16(), torch.zeros(16, 3, 16, 64).bfloat16(), torch.arange(16)
    kv_write.kv_write(x, x, pool, pool.clone(), ids)
    block_copy.block_copy([pool, pool.clone()], [(0, 1)])
    merge_states.merge_states(torch.zeros(3, 16, 2, 128), torch.zeros(3, 16, 2), torch.bfloat16)
    decode_step(16, 100, num_splits=2)
    decode_step(1, 100, 32)
    q, cu = torch.zeros(16, 9, 64).bfloat16(), torch.tensor([0, 16], dtype=torch.int32)
    flash_attention.flash_attention(q, x, x, cu, return_lse=True)
    attention_sums.attention_sums(q, x, torch.zeros(9, 16), cu)
    cache, table = torch.zeros(2, 16, 576).half(), torch.zeros(16, 2, dtype=torch.int32)
    lens = torch.ones(16, dtype=torch.int32)
    mla_decode.mla_decode(
        torch.zeros(16, 16, 512).half(), torch.zeros(16, 16, 64).half(), cache, table, lens, scale=1.0
    )


def test_what_is_compiled_ahead_of_time_is_what_is_launched(launches):
    """Types, constants, warps and stages: a case that drifts away from its launcher would prove nothing."""
    run_shapes()
    found = set()
    for launched in launches:
        kernel, kinds, options = compiled_for(launched)
        matching = [case for case in aot.cases() if case.kernel is kernel and same(case, kinds, options)]
        assert matching, f"{kernel.__name__}: no AOT case has {kinds} {options}"
        found.add(kernel.__name__)
    assert found == {case.kernel.__name__ for case in aot.cases()}


def same(case, kinds, options):
    for name, (kind, note) in kinds.items():
        if kind == "constexpr":
            if case.constants.get(name, "absent") != note:
                return False
        elif case.types.get(name) != kind or (note == "D" and kind[0] != "*" and name not in case.aligned):
            return False
    how = {"num_warps": case.num_warps, "num_stages": case.num_stages}
    return all(options.get(name, default(name)) == value for name, value in how.items())


def default(name):
    from triton.backends.nvidia.compiler import CUDAOptions

    return inspect.signature(CUDAOptions).parameters[name].default
