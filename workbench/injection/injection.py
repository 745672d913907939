"""The faults to inject into the tool calls of a run."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.events import CaseRef

_SEEDS = 1 << 53
"""Number of seeds; each is exact in every JSON reader."""


@dataclass(frozen=True, slots=True)
class Injection:
    """Faults to inject into tool calls: rules in the worker's form, and the seed of all cases."""

    rules: tuple[dict[str, Any], ...]
    seed: int = 0
    name: str = ""
    """The name of the file, followed by a digest of its content; "" if the rules are not from a file."""
    file: Path | None = None
    """The file, or None."""

    def seed_of(self, ref: CaseRef) -> int:
        """Return the seed of one execution of a case. It depends on nothing else in the run."""
        name = f"{self.seed}\0{ref.evalset_file}\0{ref.eval_id}\0{ref.repeat}"
        digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % _SEEDS

    def settings(self, ref: CaseRef) -> dict[str, Any]:
        """Return `inject` and `seed` of the execution's `calls` (`docs/worker-protocol.md`)."""
        return {"inject": list(self.rules), "seed": self.seed_of(ref)}
