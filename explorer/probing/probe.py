"""A spec for a model type that no reader knows: measured on a thin model, in a process with limits, or refused.

The configuration is data. transformers' own class for the model type is built with random weights; code that a
repository brings along is never run, and nothing is fetched.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from explorer.errors import InputError
from explorer.specs.layers import LayerKind
from explorer.specs.limits import short, whole
from explorer.specs.model import ModelSpec
from explorer.specs.pieces import Rows
from explorer.specs.tensors import Tensor
from explorer.text import Text

LIMIT_S = 90
MEMORY_BYTES = 6 * 2**30
ROOT = Path(__file__).resolve().parents[2]
_DTYPES = {"bfloat16": None, "float16": "fp16", "float32": "fp32"}


class NotMeasured(InputError):
    """A model could not be measured.

    Attributes:
        reason: why.
    """

    def __init__(self, model_type: str, reason: Text):
        kind = short(model_type)
        super().__init__(
            f"model_type {kind} could not be measured: {reason.en}", f"无法实测 model_type {kind}：{reason.zh}"
        )
        self.reason = reason


@dataclass(frozen=True)
class Measured(LayerKind):
    """A layer whose tensors were found by measuring.

    Attributes:
        kept: its tensors.
    """

    kind: ClassVar[str] = "measured"
    title: ClassVar[Text] = Text("measured on a thin model", "在薄模型上实测")

    kept: tuple[Tensor, ...]

    def tensors(self) -> tuple[Tensor, ...]:
        """What was found."""
        return self.kept

    def shape(self) -> Text:
        """Role, heads and row of each."""
        line = ", ".join(f"{tensor.role} {tensor.heads} x {tensor.dim}" for tensor in self.kept)
        return Text(line, line)


def spec_from_probe(
    config: Any, name: str = "config.json", *, limit_s: int = LIMIT_S, memory_bytes: int = MEMORY_BYTES
) -> ModelSpec:
    """Measure what a model with this configuration keeps.

    Args:
        config: the parsed `config.json` of a type that the installed transformers knows.
        name: what to call the model.
        limit_s: seconds that it may take.
        memory_bytes: what the measuring process may use beside its libraries.

    Raises:
        NotMeasured: transformers does not know the type, cannot build or run it within the limits, or what it keeps
            follows no known rule; then nothing is estimated.
        InputError: the config is no JSON object with a model type.
    """
    if not isinstance(config, Mapping) or not isinstance(config.get("model_type"), str):
        raise InputError(
            f"the config is {short(config)}: expected a JSON object with a model_type",
            f"配置为 {short(config)}：应为含 model_type 的 JSON 对象",
        )
    answer = _ask(config, limit_s, memory_bytes)
    if "error" in answer:
        raise NotMeasured(config["model_type"], Text(*answer["error"]))
    layers = [_layer(tensors) for tensors in answer["layers"]]
    return ModelSpec(
        name=name,
        title=name,
        layers=tuple(layers[index] for index in answer["stands_for"]),
        num_heads=whole("num_heads", answer["num_heads"] or 1, shown_as="num_attention_heads"),
        hidden_size=whole("hidden_size", answer["hidden_size"]),
        max_positions=answer["max_positions"] if isinstance(answer["max_positions"], int) else None,
        assumptions=_assumptions(answer),
        model_type=answer["model_type"],
    )


def _ask(config: Mapping[str, Any], limit_s: int, memory_bytes: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "explorer.probing.probe_worker", str(memory_bytes), str(limit_s)]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        output, _ = process.communicate(json.dumps(config), timeout=limit_s)
    except subprocess.TimeoutExpired:
        return {"error": [f"it took longer than the {limit_s} s it may", f"耗时超过上限 {limit_s} 秒"]}
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    lines = output.strip().splitlines()
    if process.returncode or not lines:
        return {"error": ["building it ended the process: too large or malformed", "构建时进程终止：过大或格式有误"]}
    return json.loads(lines[-1])


def _layer(tensors: list[dict[str, Any]]) -> LayerKind:
    return Measured(tuple(_tensor(each) for each in tensors if not _is_bookkeeping(each)))


def _is_bookkeeping(tensor: Mapping[str, Any]) -> bool:
    return tensor["dtype"].startswith("int") and tensor["elements"] == 1


def _tensor(found: Mapping[str, Any]) -> Tensor:
    rows = tuple((weight, Rows(every, skip, cap)) for weight, every, skip, cap in found["rows"])
    if found["dtype"] in _DTYPES:
        return Tensor(found["role"], found["heads"], found["dim"], rows, dtype=_DTYPES[found["dtype"]])
    return Tensor("state", 1, found["row_bytes"], rows, dtype="int8")  # integers and flags, by their bytes


def _assumptions(answer: Mapping[str, Any]) -> tuple[Text, ...]:
    model_type, version = answer["model_type"], answer["transformers"]
    built, real = answer["num_layers"], answer["real_num_layers"]
    lines = [
        Text(
            f"no reader knows {model_type}: probed. transformers {version} built {built} of its {real} layers with "
            "random weights; the size of every tensor in its cache was fitted at 1 to 140 tokens and checked at 301, "
            "on two models of different width",
            f"没有 {model_type} 的读取规则：改为实测。transformers {version} 以随机权重构建 {real} 层中的 {built} 层；"
            "在 1 到 140 个 token 上拟合缓存中每个张量的大小，在 301 个 token 处验证，两个宽度不同的模型结果一致",
        ),
        Text(
            "each further layer is taken to keep what the measured layer of its kind keeps, and every tensor to be "
            "read whole; counted is what transformers' own cache keeps, a window as W tokens",
            "其余各层视为与同类的已测层相同，保留的张量视为每步全部读取；"
            "计数以 transformers 自己的缓存为准，窗口按 W 个 token 计",
        ),
    ]
    if not answer["windows_seen"]:
        lines.append(
            Text(
                "the config names a window, but the cache keeps tokens beyond it: counted as kept",
                "配置中写有窗口，但缓存保留了窗口以外的 token：按保留计入",
            )
        )
    if answer["unreached_limits"]:
        names = ", ".join(answer["unreached_limits"])
        lines.append(
            Text(
                f"{names}: larger than the lengths measured, taken not to limit what is kept",
                f"{names}：大于实测长度，视为不限制保留的内容",
            )
        )
    return tuple(lines)
