"""The environment variables an agent runs with: the process's, completed by its `.env`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class AgentEnvironment:
    """`values` is the whole environment to set: what was given, completed from `file` (None: no `.env`, or it is
    switched off). `names` are the names that the file sets, in its order, whether or not the given environment won.
    `fingerprint` changes when a value behind one of these names changes. `warnings` say what in the file cannot be
    used, with its line."""

    values: Mapping[str, str]
    file: Path | None
    names: tuple[str, ...]
    fingerprint: str
    warnings: tuple[str, ...]
