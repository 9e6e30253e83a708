"""Wire formats of model families: the list, detection, and reading of finished texts."""

from ._louver import detect, families, read

__all__ = ["detect", "families", "read"]
