"""Driver files of agent kinds, which come as texts and are kept by their content."""

import hashlib
import os
import re
from collections.abc import Mapping

from workbench.places.host.cache import cache_folder


def store_drivers(drivers: Mapping[str, str]) -> dict[str, str]:
    """Write driver files unless they exist, and return their paths by name, in the form of an AgentSpec.

    Raises:
        OSError: one cannot be written.
        ValueError: a name cannot be that of a file.
    """
    paths = {}
    for name, text in drivers.items():
        if not re.fullmatch(r"[\w-]{1,100}", name, re.ASCII):
            raise ValueError(f"{name!r} cannot be the name of a driver")
        content = text.encode("utf-8", "surrogatepass")
        path = cache_folder() / "drivers" / hashlib.sha256(content).hexdigest() / f"{name}.py"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(f".{os.getpid()}")
            part.write_bytes(content)
            part.replace(path)
        paths[name] = str(path)
    return paths
