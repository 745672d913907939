"""What the schema of frozen files cannot say: whose file it is, and keys that exclude each other."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.model.breaches import Breach
from workbench.model.places import Location
from workbench.recordings.frozen_path import frozen_name
from workbench.recordings.frozen_schema import CHOICES, IN, NOT_BOTH, SCHEMA

WHAT = "a frozen file"
AGAIN = "Freeze the case again"
_FAMILY = SCHEMA.rpartition("/")[0] + "/"


def foreign(value: Mapping[str, Any]) -> Iterator[Breach]:
    """Yield why an object is not a frozen file of this version, if it is not."""
    schema = value.get("schema")
    if schema == SCHEMA:
        return
    if isinstance(schema, str) and schema.startswith(_FAMILY):
        message = f"it has the schema `{schema}`, but this version reads `{SCHEMA}`"
        later = schema.removeprefix(_FAMILY).isdecimal()
        yield Breach(("schema",), message, "Update agent-workbench" if later else AGAIN)
    else:
        yield Breach(("schema",) if "schema" in value else (), f"this is not {WHAT}", f'Expected "schema": "{SCHEMA}"')


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
