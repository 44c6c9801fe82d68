"""The public endpoint `estimate`: the size of a cache for programs, by the same function as the command line.

    from gradio_client import Client
    Client("http://127.0.0.1:7860").predict("llama-3.1-8b", 32768, api_name="/estimate")["total_bytes"]

Only names of the catalogue and configs given as text are taken: nothing here touches the disk or the network.
"""

import re
import threading
import time
from collections import OrderedDict
from typing import Any

import gradio as gr

from explorer.errors import ExplorerError, InputError
from explorer.estimators.ranks import Ranks
from explorer.estimators.report import Options, report
from explorer.specs import catalog
from explorer.specs.from_config import from_config
from explorer.specs.limits import short
from explorer.specs.model import ModelSpec
from pages.cache_size_config import NAME, parse_text

CALLS_PER_SECOND = 20
BURST = 60
# Address by address; beyond so many the ones that were quiet for longest are forgotten.
_ADDRESSES = 1_024
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")

DESCRIPTION = f"""The size of a model's KV cache, computed from its configuration, layer by layer.

model: a name of the explorer's catalogue ("llama-3.1-8b"); with config, "" or what to call it. No path, no Hub id.
tokens: tokens kept per sequence, 1 to 1,073,741,824. batch: sequences of that length, 1 to 65,536.
dtype: bf16, fp16, fp32, fp8, int8, or a packed format: fp8_head, fp8_ds_mla, q8_0, q4_0, kivi-4, kivi-2.
tensor_parallel: devices that share the KV heads, 1 to 1,024.
config: the text of a config.json instead of a name, at most 200,000 characters.
Returns total_bytes, bytes_per_token_growing and constant_bytes (of one sequence), settled_at, read_bytes_per_step,
ledger, per_rank, assumptions and more, as `python -m explorer estimate --json` prints it.
Over plain HTTP all six values are sent, in this order: {{"data": ["llama-3.1-8b", 32768, 1, "bf16", 1, ""]}}.
At most {CALLS_PER_SECOND} calls a second from one address."""


class RateLimit:
    """A bucket of calls for each caller: `burst` at once, refilled at `per_second`.

    Attributes:
        per_second: calls a second in the long run.
        burst: calls that a caller may make at once after a pause.
    """

    def __init__(self, per_second: float, burst: int):
        self.per_second, self.burst = per_second, burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, caller: str, now: float) -> bool:
        """Whether the call at the time `now`, in seconds, may go on."""
        with self._lock:
            left, since = self._left.pop(caller, (float(self.burst), now))
            left = min(self.burst, left + (now - since) * self.per_second)
            allowed = left >= 1
            self._left[caller] = (left - 1 if allowed else left, now)
            if len(self._left) > _ADDRESSES:
                self._left.popitem(last=False)
            return allowed


def add_api(limit: RateLimit | None = None) -> None:
    """Register the endpoint on the site that is being built."""
    limit = limit or RateLimit(CALLS_PER_SECOND, BURST)

    # Named and typed for Gradio, which makes the endpoint's schema from it; callers may send anything.
    def estimate(
        request: gr.Request,
        model: str,
        tokens: int,
        batch: int = 1,
        dtype: str = "bf16",
        tensor_parallel: int = 1,
        config: str = "",
    ) -> dict:  # type: ignore[type-arg]  # Gradio reads the plain class
        try:
            if not limit.take(request.client.host if request.client else "", time.monotonic()):
                raise InputError(
                    f"too many calls: at most {limit.per_second:g} a second; wait a moment and call again",
                    f"调用过于频繁：每秒至多 {limit.per_second:g} 次；请稍候再试",
                )
            return answer(model, tokens, batch, dtype, tensor_parallel, config)
        except ExplorerError as error:
            raise gr.Error(error.text.en, print_exception=False) from None

    # Not queued: it takes a few milliseconds.
    gr.api(estimate, api_name="estimate", api_description=DESCRIPTION, queue=False)


def answer(
    model: object, tokens: object, batch: object, dtype: object, tensor_parallel: object, config: object
) -> dict[str, Any]:
    """The estimate for whatever a caller sent.

    Raises:
        InputError: with one line that says what would be right.
    """
    if not isinstance(dtype, str):
        raise InputError(
            f"dtype={short(dtype)}: expected a name such as bf16", f"dtype={short(dtype)}：应为名称，如 bf16"
        )
    spec = _spec(model, config)
    options = Options(batch=batch, dtype=dtype, ranks=Ranks(tp=tensor_parallel))  # type: ignore[arg-type]  # checked there
    return report(spec, tokens, options)  # type: ignore[arg-type]


def _spec(model: object, config: object) -> ModelSpec:
    if config is not None and config != "":
        return from_config(parse_text(config), NAME)
    name = model.strip() if isinstance(model, str) else ""
    if not _PLAIN_NAME.fullmatch(name):
        few = ", ".join(list(catalog.models())[:4])
        raise InputError(
            f"model={short(model)}: expected a name of the catalogue ({few}, ...), or a config.json's text as config",
            f"model={short(model)}：应为目录中的名称（{few} 等），或在 config 中给出 config.json 的文本",
        )
    return catalog.model_named(name)
