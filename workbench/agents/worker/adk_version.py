"""Which google-adk this interpreter has, found without importing it."""

from __future__ import annotations

import functools
import importlib.metadata
import re
from typing import Optional, Tuple

OLDEST = "1.18"
"""The oldest google-adk that agents are run with."""


@functools.lru_cache(maxsize=None)
def installed_adk() -> Optional[str]:
    """The version, or None where it is not installed. Looked up once: what is forked from here has it at once."""
    try:
        return importlib.metadata.version("google-adk")
    except importlib.metadata.PackageNotFoundError:
        return None


def is_supported(version: str) -> bool:
    """Is it `OLDEST` or later?"""
    return _numbers(version) >= _numbers(OLDEST)


def _numbers(version: str) -> Tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
