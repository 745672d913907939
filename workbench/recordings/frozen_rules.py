"""What the schema of frozen files cannot say: whose file it is, and keys that exclude each other."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.model.breaches import Breach
from workbench.model.own_file import OwnFile, OwnFileError
from workbench.model.places import Location
from workbench.recordings.frozen_path import frozen_name
from workbench.recordings.frozen_schema import CHOICES, IN, NOT_BOTH, SCHEMA

WHAT = "a frozen file"
AGAIN = "Freeze the case again"
_FAMILY = SCHEMA.rpartition("/")[0] + "/"


class LaterFrozenFileError(OwnFileError):
    """A frozen file of a later version. It must not be overwritten."""


def refuse_foreign(file: OwnFile) -> None:
    """Check that a file is a frozen file of this version.

    Raises:
        LaterFrozenFileError: it was written by a later version.
        OwnFileError: it is something else.
    """
    schema = file.value.get("schema")
    if schema == SCHEMA:
        return
    if isinstance(schema, str) and schema.removeprefix(_FAMILY).isdecimal():
        message = f"it has the schema `{schema}`, but this version reads `{SCHEMA}`"
        try:
            file.refuse([Breach(("schema",), message, "Update agent-workbench")])
        except OwnFileError as error:
            raise LaterFrozenFileError(error.faults) from None
    place: Location = ("schema",) if "schema" in file.value else ()
    file.refuse([Breach(place, f"this is not {WHAT}", f'Expected "schema": "{SCHEMA}"')])


def contradictions(path: Path, value: Mapping[str, Any]) -> Iterator[Breach]:
    """Yield what is wrong in a frozen file that matches the schema."""
    expected = frozen_name(value["eval_id"])
    if path.name != expected:
        message = f"the file is named {path.name}, but the recording of this case is named {expected}"
        yield Breach(("eval_id",), message, "Rename the file, or freeze the case again")
    for kind, location, item in _objects(value):
        yield from _choices(kind, location, item)
    yield from _parts(value)


def _choices(kind: str, location: Location, item: Mapping[str, Any]) -> Iterator[Breach]:
    for group in CHOICES.get(kind, NOT_BOTH):
        found = [key for key in group if key in item]
        if len(found) > 1:
            yield Breach((*location, found[1]), f"`{found[0]}` and `{found[1]}` exclude each other", "Keep one")
        elif not found and kind in CHOICES:
            names = " or ".join(f"`{key}`" for key in group if not key.endswith(IN))
            yield Breach(location, f"this {kind} needs {names}")


def _objects(value: Mapping[str, Any]) -> Iterator[tuple[str, Location, Mapping[str, Any]]]:
    """Yield the objects whose keys exclude each other: kind, location and object."""
    for number, call in enumerate(value["calls"]):
        yield "call", ("calls", number), call
        effects = call.get("effects", {})
        yield "effects", ("calls", number, "effects"), effects
        for place, artifact in enumerate(effects.get("artifacts", ())):
            yield "artifact", ("calls", number, "effects", "artifacts", place), artifact
    for number, model in enumerate(value.get("models", ())):
        yield "model call", ("models", number), model
    for number, part in enumerate(value.get("requests", ())):
        yield "part", ("requests", number), part


def _parts(value: Mapping[str, Any]) -> Iterator[Breach]:
    """Yield parts of requests that are there twice."""
    known: set[str] = set()
    for number, part in enumerate(value.get("requests", ())):
        if part["part"] in known:
            yield Breach(("requests", number, "part"), f"the part {part['part']} is here twice", "Delete one of them")
        known.add(part["part"])
