"""Environment of the agent that is judged. Judges and safety calls use it, never the environment of this process."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class JudgeEnvironment:
    """Environment of one agent.

    `key` is the fingerprint that identifies it. `values` are all environment variables of the agent, its `.env`
    included. The others say where its own Python functions run: `interpreter` is the agent's Python, `root` the folder
    that its modules are imported from, `folder` the agent's folder, `cwd` the working directory.
    """

    key: str
    values: Mapping[str, str] = field(repr=False)
    interpreter: str = ""
    root: str = ""
    folder: str = ""
    cwd: str = ""
