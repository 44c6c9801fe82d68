"""The scales: hand-made caches whose bytes are known."""

import torch

from explorer.probing.weigh import weigh


class Layer:
    def __init__(self, **tensors):
        vars(self).update(tensors)


class Cache:
    def __init__(self, *layers):
        self.layers = list(layers)


def test_every_tensor_of_every_layer():
    """Keys and Values of 3 tokens, 2 heads, 4 elements in bf16: 48 bytes each; a state of 5 fp32 numbers: 20."""
    keys, values = torch.zeros(1, 2, 3, 4, dtype=torch.bfloat16), torch.zeros(1, 2, 3, 4, dtype=torch.bfloat16)
    cache = Cache(Layer(keys=keys, values=values), Layer(states={0: torch.zeros(5), 1: None}, name="x", length=7))
    weighed = weigh(cache)
    assert [(held.name, held.layer, held.num_bytes) for held in weighed.tensors] == [
        ("keys", 0, 48),
        ("values", 0, 48),
        ("states.0", 1, 20),
    ]
    assert (weighed.held_bytes, weighed.layer_bytes(0), weighed.layer_bytes(1)) == (116, 96, 20)
    assert weighed.by_dtype() == {"bfloat16": 96, "float32": 20}
    assert weighed.retained_bytes == 0


def test_an_alias_weighs_nothing():
    """DeepSeek-V4 keeps Key and Value as one tensor: its 32 bytes are there once."""
    both = torch.zeros(1, 1, 4, 2)
    assert [held.num_bytes for held in weigh(Cache(Layer(keys=both, values=both))).tensors] == [32, 0]


def test_overlapping_views_count_each_byte_once():
    """Elements 0-5 and 4-9 of one storage show 10 elements, 40 bytes, of its 48."""
    storage = torch.zeros(12)
    weighed = weigh(Cache(Layer(a=storage[:6], b=storage[4:10])))
    assert [held.num_bytes for held in weighed.tensors] == [24, 16]
    assert (weighed.held_bytes, weighed.retained_bytes) == (40, 8)


def test_a_slice_is_what_it_shows():
    """A window cut from a longer tensor shows 3 of its 10 tokens; the rest of the storage is named, not counted."""
    whole = torch.zeros(1, 2, 10, 4, dtype=torch.bfloat16)
    weighed = weigh(Cache(Layer(keys=whole[:, :, -3:])))
    assert (weighed.held_bytes, weighed.retained_bytes) == (48, 112)


def test_an_expanded_tensor_shows_its_one_row():
    assert weigh(Cache(Layer(keys=torch.zeros(1, 1, 4).expand(1, 8, 4)))).held_bytes == 16


def test_lists_dicts_and_cycles():
    layer = Layer(parts=[(torch.zeros(2), torch.zeros(0))], weights=torch.nn.Linear(50, 50))
    layer.cache = cache = Cache(layer)
    assert weigh(cache).held_bytes == 8, "two numbers; a module is no cache, an empty tensor nothing"


def test_a_bare_list_has_no_layers():
    weighed = weigh([torch.zeros(4), torch.zeros(4)])
    assert {held.layer for held in weighed.tensors} == {None}
    assert weighed.layer_bytes(None) == 32
