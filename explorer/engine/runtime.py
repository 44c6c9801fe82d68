"""The models that this process has loaded: each once, shared by all visitors, loaded in the background if asked."""

import contextlib
import threading
from dataclasses import dataclass
from typing import Literal

import torch

from explorer.engine.model import Model, load
from explorer.errors import ExplorerError
from explorer.text import Text
from explorer.weights import DEFAULT_MODEL, WeightProgress, resolve

State = Literal["idle", "loading", "ready", "failed"]
IDLE = Text("The model is not loaded yet.", "模型尚未加载。")
LOADING = Text("The model is being loaded.", "正在加载模型。")
READY = Text("The model is ready.", "模型已就绪。")
BROKEN = Text("The model could not be loaded; the log says why.", "模型加载失败；原因见日志。")


@dataclass(frozen=True)
class Status:
    """How far the default model is.

    Attributes:
        state: `idle`, `loading`, `ready` or `failed`.
        text: the same in words, with what went wrong if it failed.
        done_bytes: of the download, if one is under way.
        total_bytes: likewise, 0 if unknown.
        model: the loaded model, when ready.
    """

    state: State
    text: Text
    done_bytes: int = 0
    total_bytes: int = 0
    model: Model | None = None


_models: dict[tuple[str, str, str], Model] = {}
_load_lock = threading.Lock()
_status = Status("idle", IDLE)
_default_name = DEFAULT_MODEL


def default_dtype(device: str | None = None) -> str:
    """bf16: half the bytes of fp32, and fast wherever this runs."""
    del device
    return "bf16"


def default_device() -> str:
    """The GPU if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def get_model(name: str | None = None, dtype: str | None = None, device: str | None = None) -> Model:
    """A loaded model; the first call for a name, dtype and device loads it, others wait for that.

    Raises:
        ExplorerError: it cannot be found or loaded.
    """
    key = (name or _default_name, dtype or default_dtype(device), device or default_device())
    if key in _models:
        return _models[key]
    with _load_lock:
        if key not in _models:
            watched = key == (_default_name, default_dtype(), default_device())
            _models[key] = _load_watched(key) if watched else load(resolve(key[0]), dtype=key[1], device=key[2])
        return _models[key]


def _load_watched(key: tuple[str, str, str]) -> Model:
    """Load the default model and keep `status` up to date."""
    try:
        _set(Status("loading", LOADING))
        model = load(resolve(key[0], progress=_report), dtype=key[1], device=key[2])
    except ExplorerError as error:
        _set(Status("failed", error.text))
        raise
    except Exception:
        _set(Status("failed", BROKEN))
        raise
    _set(Status("ready", READY, model=model))
    return model


def _report(progress: WeightProgress) -> None:
    _set(Status("loading", progress.text, progress.done_bytes, progress.total_bytes))


def _set(status: Status) -> None:
    global _status
    _status = status


def status() -> Status:
    """How far the default model is; never waits."""
    return _status


def preload(name: str | None = None) -> threading.Thread:
    """Load the default model in the background; `name` makes another one the default of this process."""
    global _default_name
    _default_name = name or _default_name

    def work() -> None:
        with contextlib.suppress(ExplorerError):  # `status` carries the line that a visitor sees
            get_model()

    thread = threading.Thread(target=work, name="preload", daemon=True)
    thread.start()
    return thread


def drop(model: Model) -> None:
    """Forget a model that is not the default one, so that its memory can be used again."""
    for key, held in list(_models.items()):
        if held is model and model is not _status.model:
            del _models[key]
