"""Run as a module in a process of its own: reads a configuration, measures it, prints one line of JSON last.

    python -m explorer.probing.probe_worker MEMORY_BYTES SECONDS < config.json

It is a process so that a configuration that makes transformers build for ever, or ask for all memory, can be ended.
"""

import json
import os
import resource
import sys
from typing import Any


def main() -> None:
    """Measure; whatever cannot be done becomes an `error` in both languages."""
    memory_bytes, seconds = int(sys.argv[1]), int(sys.argv[2])
    config = json.load(sys.stdin)
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    resource.setrlimit(resource.RLIMIT_CPU, (2 * seconds, 2 * seconds))
    _answer(_unknown(config) or _measured_within(config, memory_bytes))


def _unknown(config: dict[str, Any]) -> dict[str, Any] | None:
    """The error for a type that transformers does not know; asked first, for torch takes seconds to load."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    if config["model_type"] in CONFIG_MAPPING:
        return None
    return {"error": ["the installed transformers does not know it", "已安装的 transformers 也不认识它"]}


def _measured_within(config: dict[str, Any], memory_bytes: int) -> dict[str, Any]:
    import torch
    import transformers

    _cap_memory(memory_bytes)
    torch.set_num_threads(2)
    try:
        return measured(config) | {"transformers": transformers.__version__}
    except MemoryError:
        return {"error": ["it needs more memory than it may have", "所需内存超过上限"]}


def _answer(answer: dict[str, Any]) -> None:
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


def measured(config: dict[str, Any]) -> dict[str, Any]:
    """What `config` keeps, with the sizes that a spec also states, or the error."""
    from explorer.errors import InputError
    from explorer.probing import hugging_face, measure

    try:
        real = hugging_face.language_config(config)
        found = measure.as_json(measure.measure(config))
    except InputError as error:
        return {"error": [error.text.en, error.text.zh]}
    return found | {
        "unreached_limits": measure.unreached_limits(real.to_dict()),
        "model_type": real.model_type,
        "num_heads": getattr(real, "num_attention_heads", None),
        "hidden_size": getattr(real, "hidden_size", None),
        "max_positions": getattr(real, "max_position_embeddings", None),
    }


def _cap_memory(memory_bytes: int) -> None:
    """Let the process grow by `memory_bytes` from here: importing torch alone maps several GB that it never touches."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            mapped = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:  # not Linux: the time limit and the count of weights remain
        return
    resource.setrlimit(resource.RLIMIT_AS, (mapped + memory_bytes, mapped + memory_bytes))


if __name__ == "__main__":
    main()
