"""Reading a `config.json` that anyone may have written: small, plain JSON, or one line that says what is wrong."""

import json
from pathlib import Path
from typing import Any, NoReturn

from explorer.errors import InputError

# Published files are a few KB; those that list every quantised module reach some hundred.
MAX_CONFIG_BYTES = 4 * 2**20


def read_config(path: Path) -> Any:
    """The parsed content of the config file at `path`, or of the `config.json` in the folder `path`.

    Raises:
        InputError: no such file, not a regular file, too large, or not JSON.
    """
    file = path / "config.json" if path.is_dir() else path
    if not file.exists():
        raise InputError(f"there is no config.json at {file.name!r}", f"找不到配置文件 {file.name!r}")
    if not file.is_file():
        raise InputError(
            f"{file.name!r} is not a regular file: expected a config.json",
            f"{file.name!r} 不是普通文件：应为 config.json",
        )
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_CONFIG_BYTES + 1)
    except OSError:
        raise InputError(
            f"{file.name!r} cannot be read: check its permissions", f"无法读取 {file.name!r}：请检查权限"
        ) from None
    return parse_config(raw)


def parse_config(raw: bytes | str) -> Any:
    """The value that `raw` holds as JSON, without NaN or infinities.

    Raises:
        InputError: too large, not UTF-8, not JSON, nested too deeply, or with a number that is none.
    """
    if len(raw) > MAX_CONFIG_BYTES:
        raise InputError(
            "the config is larger than 4 MiB: expected a model's config.json", "配置超过 4 MiB：应为模型的 config.json"
        )
    try:
        return json.loads(raw.decode("utf-8-sig") if isinstance(raw, bytes) else raw, parse_constant=_no_constant)
    except InputError:
        raise
    except UnicodeDecodeError:
        raise InputError(
            "the file is not text: expected JSON in UTF-8", "文件不是文本：应为 UTF-8 编码的 JSON"
        ) from None
    except RecursionError:
        raise InputError("the config is nested too deeply", "配置嵌套过深") from None
    except ValueError as error:
        line = getattr(error, "lineno", None)
        place, place_zh = (f" (line {line})", f"（第 {line} 行）") if line else ("", "")
        raise InputError(
            f"the file is not JSON{place}: expected a config.json", f"文件不是 JSON{place_zh}：应为 config.json"
        ) from None


def _no_constant(name: str) -> NoReturn:
    raise InputError(f"the config holds {name}, which is not a JSON number", f"配置中有 {name}，它不是 JSON 数字")
