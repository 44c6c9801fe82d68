"""Which device a run uses."""

import torch

from explorer.errors import ResourceError
from explorer.text import Text


def pick_device(name: str | None = None) -> torch.device:
    """A device by name ("cpu", "cuda", "cuda:1"), or for None the GPU where there is one.

    Raises:
        ResourceError: it is not there.
    """
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise ResourceError(Text(f"device {name!r}: expected cpu or cuda", f"设备 {name!r}：应为 cpu 或 cuda"))
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ResourceError(Text(f"there is no device {name} here; use cpu", f"这里没有设备 {name}；请使用 cpu"))
    return device
