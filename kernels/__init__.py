"""GPU and CPU kernels, one file each. Nothing happens on import: transformers may import this name too."""
