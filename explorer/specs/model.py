"""A model and a device, as far as the size of a cache depends on them."""

from dataclasses import dataclass

from explorer.specs.layers import LayerKind
from explorer.text import Text


@dataclass(frozen=True)
class Switch:
    """An assumption that has two sides, on each of which a printed figure may rest.

    Attributes:
        name: "k-eq-v-stored-once".
        off: what is assumed by itself.
        on: what is assumed if it is switched.
        chosen: whether it is switched in this spec.
    """

    name: str
    off: Text
    on: Text
    chosen: bool = False


@dataclass(frozen=True)
class ModelSpec:
    """What a model keeps and how large it is.

    Attributes:
        name: plain lower-case name ("llama-3.1-8b"), or the file's name for a config that was read.
        layers: one kind per layer, in order.
        num_heads: query heads of a layer.
        hidden_size: width of the residual stream.
        max_positions: the context the config states, None if it states none.
        weight_params: number of weights, None if not known.
        title: display name.
        source: where the numbers come from.
        date: when the source was published, "YYYY-MM-DD" or "YYYY-MM"; "" for a reader's own file.
        verified: what has been checked about the numbers; None for a reader's own file.
        assumptions: what had to be assumed to read the config.
        mtp_layers: what the checkpoint's multi-token-prediction layers keep; they run only where drafting is on.
        switches: assumptions that `from_config` can turn to their other side.
        model_type: the family whose reader made this; "" for one that was put together by hand.
    """

    name: str
    layers: tuple[LayerKind, ...]
    num_heads: int
    hidden_size: int
    max_positions: int | None = None
    weight_params: int | None = None
    title: str = ""
    source: str = ""
    date: str = ""
    verified: Text | None = None
    assumptions: tuple[Text, ...] = ()
    mtp_layers: tuple[LayerKind, ...] = ()
    switches: tuple[Switch, ...] = ()
    model_type: str = ""

    def weight_bytes(self, bits_per_weight: int = 16) -> int | None:
        """Bytes of the weights at `bits_per_weight` (scales of a quantised format not counted), None if not known."""
        return None if self.weight_params is None else -(-self.weight_params * bits_per_weight // 8)


@dataclass(frozen=True)
class DeviceSpec:
    """An accelerator's memory and peak speed.

    Attributes:
        name: plain lower-case name ("h100-sxm-80gb").
        title: display name.
        label_gb: the capacity printed on the data sheet, in the sheet's own "GB".
        memory_bytes: what the driver reports as total; sheets say "GB" for sizes that are closer to GiB.
        bandwidth_bytes_per_s: peak memory bandwidth of the data sheet.
        source: the data sheet.
        memory_source: where `memory_bytes` comes from.
        date: when the sheet was looked at, "YYYY-MM-DD".
        verified: what has been checked about the numbers.
        bf16_flops: peak bf16 operations a second without sparsity, None if not known for certain.
        flops_source: where that comes from.
    """

    name: str
    title: str
    label_gb: int
    memory_bytes: int
    bandwidth_bytes_per_s: int
    source: str
    memory_source: str
    date: str
    verified: Text
    bf16_flops: int | None = None
    flops_source: str = ""
