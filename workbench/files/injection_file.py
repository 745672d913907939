"""Files for `run --inject FILE`, read and checked."""

import hashlib
from pathlib import Path

from workbench.files.injection_rules import Injection, rules_breaches, wire_rules
from workbench.files.json_text.text_file import unreadable
from workbench.files.own_file import OwnFile, OwnFileError
from workbench.files.regular_file import read_regular

LARGEST = 4 << 20
"""Bytes of the largest file."""
_WHAT = "a file with faults to inject"


def read_injection(path: Path) -> Injection:
    """Read a file for `--inject`. May block, so call it in a thread.

    Raises:
        OwnFileError: it cannot be read or is wrong. Its faults say where.
    """
    try:
        content = read_regular(path, LARGEST)
    except OSError as error:
        raise OwnFileError([unreadable(path, error)]) from None
    return parse_injection(path, content)


def parse_injection(path: Path, content: bytes) -> Injection:
    """Return the injection in the content of a file.

    Raises:
        OwnFileError: the content is wrong.
    """
    file = OwnFile(path, content, _WHAT)
    file.refuse(rules_breaches(file.value))
    digest = hashlib.blake2b(content, digest_size=8).hexdigest()
    return Injection(tuple(wire_rules(file.value)), file.value.get("seed", 0), f"{path.name} {digest}", path)
