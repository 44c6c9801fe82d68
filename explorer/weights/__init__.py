"""Where model weights come from, checked and cached."""

from explorer.weights.cache import default_root
from explorer.weights.model_files import DEFAULT_MODEL, SUPPORTED_FAMILIES, ModelFiles, WeightProgress
from explorer.weights.resolve import resolve

__all__ = ["DEFAULT_MODEL", "SUPPORTED_FAMILIES", "ModelFiles", "WeightProgress", "default_root", "resolve"]
