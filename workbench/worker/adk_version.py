"""The version of google-adk in this interpreter, found without importing it."""

from __future__ import annotations

import functools
import importlib.metadata
import re
from typing import Optional, Tuple

OLDEST = "1.18"
"""The oldest supported google-adk."""


@functools.lru_cache(maxsize=None)
def installed_adk() -> Optional[str]:
    """Return the version, or None if it is not installed. The result is cached for forks."""
    try:
        return importlib.metadata.version("google-adk")
    except importlib.metadata.PackageNotFoundError:
        return None


def is_supported(version: str) -> bool:
    """Return whether the version is `OLDEST` or later."""
    return _numbers(version) >= _numbers(OLDEST)


def _numbers(version: str) -> Tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
