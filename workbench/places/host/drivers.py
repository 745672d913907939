"""Driver files of agent kinds, which come as texts and are kept by their content."""

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from workbench.places.host.cache import Cache, cache_folder


def store_drivers(drivers: Mapping[str, str]) -> dict[str, str]:
    """Write driver files unless they exist, and return their paths by name, in the form of an AgentSpec.

    Raises:
        OSError: one cannot be written.
        ValueError: a name cannot be that of a file.
    """
    paths: dict[str, str] = {}
    if not drivers:
        return paths
    cache = Cache(cache_folder())
    cache.make()
    for name, text in drivers.items():
        if not re.fullmatch(r"[\w-]{1,100}", name, re.ASCII):
            raise ValueError(f"{name!r} cannot be the name of a driver")
        content = text.encode("utf-8", "surrogatepass")
        path = cache.folder / "drivers" / hashlib.sha256(content).hexdigest() / f"{name}.py"
        if not _has(path, content):
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(f".{os.getpid()}")
            part.write_bytes(content)
            part.replace(path)
        paths[name] = str(path)
    return paths


def _has(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False
