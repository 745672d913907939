"""Files for `run --inject FILE`, read and checked."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.events import CaseRef
from workbench.model.faults import Fault, unexpected
from workbench.model.foreign_files import not_json
from workbench.model.locating import fault_of, faults_of
from workbench.model.places import Places
from workbench.model.scanner import LARGEST_TREE, is_scannable, scan
from workbench.model.text_file import TextFile, file_faults, unreadable

_EXPECTED = 'Expected {"schema": "agent-workbench/inject/1", "rules": [{"tool": "…", "error": {…}}]}'
_SEEDS = 1 << 53
"""Number of seeds; each is exact in every JSON reader."""


class BrokenInjectionError(ValueError):
    """A file for `--inject` cannot be used. `faults` has at least one error, each with its place."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(fault.sentence() for fault in faults if fault.severity == "error"))
        self.faults = tuple(faults)


@dataclass(frozen=True, slots=True)
class Injection:
    """Faults to inject into tool calls: rules in the worker's form, and the seed of all cases."""

    rules: tuple[dict[str, Any], ...]
    seed: int = 0
    digest: str = ""
    """Digest (BLAKE2b, 16 bytes, hex) of the file's content; "" if the rules are not from a file."""

    def seed_of(self, ref: CaseRef) -> int:
        """Return the seed of one execution of a case. It depends on nothing else in the run."""
        name = f"{self.seed}\0{ref.evalset_file}\0{ref.eval_id}\0{ref.repeat}"
        digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % _SEEDS


def read_injection(path: Path) -> Injection:
    """Read a file for `--inject`. Warnings, such as duplicate keys, are errors here: every rule should do what it says.

    Raises:
        BrokenInjectionError: the file cannot be read or is wrong.
    """
    try:
        return parse_injection(path, TextFile.read(path, LARGEST_TREE))
    except OSError as error:
        raise BrokenInjectionError([unreadable(path, error)]) from None
    except (MemoryError, RecursionError) as error:
        raise BrokenInjectionError([unexpected(path, error)]) from None


def parse_injection(path: Path, file: TextFile) -> Injection:
    """Return the injection that a file with this content is.

    Raises:
        BrokenInjectionError: the content is wrong.
    """
    from workbench.injection.rules import rules_breaches, wire_rules  # Loads pydantic.

    if not is_scannable(file.data):
        raise BrokenInjectionError([Fault(path, 0, 0, "", "the file is too large for rules about faults", _EXPECTED)])
    faults = [fault for fault in file_faults(path, file) if fault.severity == "error"]
    if faults:
        raise BrokenInjectionError(faults)
    text = file.text()
    places = Places(text)
    scanned = scan(text, places=places)
    faults = [fault_of(path, flaw, places) for flaw in scanned.flaws]
    foreign = not_json(path, text, places, _EXPECTED) if faults else None
    if foreign is not None or faults or scanned.root is None:
        raise BrokenInjectionError([_as_error(fault) for fault in ([foreign] if foreign is not None else faults)])
    content = scanned.root.value()
    found = list(faults_of(path, rules_breaches(content), scanned.root, places))
    if found:
        raise BrokenInjectionError(sorted(found, key=lambda fault: (fault.line, fault.column)))
    digest = hashlib.blake2b(file.data, digest_size=16).hexdigest()
    return Injection(tuple(wire_rules(content)), content.get("seed", 0), digest)


def _as_error(fault: Fault) -> Fault:
    message = fault.message.removesuffix(": ADK's reader gives up here").removesuffix(", but ADK accepts it")
    return replace(fault, message=message, severity="error")
