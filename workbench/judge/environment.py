"""The agent whose answers are judged: a judge and a safety call use its environment, never the process's own."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class JudgeEnvironment:
    """`key` is the fingerprint that tells environments apart, `values` all environment variables of the agent (its
    `.env` included); `interpreter`, `root`, `folder` and `cwd` say where its own Python functions run: the agent's
    Python, the folder its modules are imported from, the agent's folder, the working directory."""

    key: str
    values: Mapping[str, str] = field(repr=False)
    interpreter: str = ""
    root: str = ""
    folder: str = ""
    cwd: str = ""
