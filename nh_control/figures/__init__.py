"""Figures of a run as PNG files."""

import os

from nh_control.numerics.compiled import cache_directory, is_private

if is_private(cache_directory()):
    os.environ.setdefault("MPLCONFIGDIR", str(cache_directory() / "matplotlib"))
from nh_control.figures.gallery import save_all  # noqa: E402  (matplotlib reads its folder on import)

__all__ = ["save_all"]
