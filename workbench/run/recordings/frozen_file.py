"""Reading of frozen files. `frozen_schema` has their shape.

Values over 16 KiB lie beside the file, each named by its digest. Nothing in a file is executed or imported, and no file
outside of its folder is read. The schema cannot express which case a file belongs to, and which keys exclude each
other. This module checks both.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.files.faults import Breach, Location
from workbench.files.frozen_path import frozen_name, read_unlinked
from workbench.files.json_text.text_file import unreadable
from workbench.files.own_file import OwnFile, OwnFileError
from workbench.run.recordings.frozen_schema import CHOICES, IN, NOT_BOTH, SCHEMA, FrozenFile
from workbench.run.recordings.recording import (
    Artifact,
    Declaration,
    Effects,
    Ended,
    ModelCall,
    Origin,
    RecordedError,
    Recording,
    ToolCall,
    digest,
)
from workbench.worker.value_forms import FORM

WHAT = "a frozen file"
AGAIN = "Freeze the case again"
_FAMILY = SCHEMA.rpartition("/")[0] + "/"
LARGEST = 64 << 20
"""Maximum size in bytes of a frozen file, and of the values that it names, taken together."""
_AS_GIVEN = ("args", "responses", "value")
"""Keys of values that are given to the agent as they are.

In all others, the agent's process decodes each `$form` object.
"""
_NOT_FINITE = ("nan", "inf", "-inf")


class LaterFrozenFileError(OwnFileError):
    """A frozen file of a later version. It must not be overwritten."""


def refuse_foreign(file: OwnFile) -> None:
    """Check that a file is a frozen file of this version.

    Raises:
        LaterFrozenFileError: it was written by a later version.
        OwnFileError: it is not a frozen file.
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
    """Yield the contradictions in a frozen file that matches the schema."""
    expected = frozen_name(value["eval_id"])
    if path.name != expected:
        message = f"the file is named {path.name}, but the recording of this case is named {expected}"
        yield Breach(("eval_id",), message, "Rename the file, or freeze the case again")
    for kind, location, item in _objects(value):
        yield from _choices(kind, location, item)
    known: set[str] = set()
    for number, part in enumerate(value.get("requests", ())):
        if part["part"] in known:
            yield Breach(("requests", number, "part"), f"the part {part['part']} occurs twice", "Delete one of them")
        known.add(part["part"])


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


def read_frozen(path: Path) -> Recording:
    """Read a frozen file with the values beside it. May block, so call it in a thread.

    Raises:
        OwnFileError: it is missing, damaged, or not a frozen file. Its faults say where.
        LaterFrozenFileError: it was written by a later version.
    """
    return parse_frozen(path, frozen_content(path))


def frozen_content(path: Path) -> bytes:
    """Return the content of a frozen file. Raise OwnFileError if it cannot be read."""
    try:
        return read_unlinked(path, LARGEST)
    except OSError as error:
        raise OwnFileError([unreadable(path, error)]) from None


def parse_frozen(path: Path, content: bytes) -> Recording:
    """Return the recording in the content of a frozen file. Values beside it are read from the disk.

    Raises:
        OwnFileError: as in `read_frozen`.
    """
    file = OwnFile(path, content, WHAT)
    refuse_foreign(file)
    file.check(FrozenFile)
    file.refuse(contradictions(path, file.value))
    beside = _Beside(path.parent)
    recording = _recording(file.value, beside)
    file.refuse(beside.breaches)
    return recording


@dataclass
class _Beside:
    """The values beside a frozen file, each read once. `breaches` collects their faults."""

    folder: Path
    breaches: list[Breach] = field(default_factory=list)
    _known: dict[str, tuple[Any, int]] = field(default_factory=dict)
    size: int = 0
    """Size of all values in bytes. A value counts as often as it is named."""

    def get(self, item: Mapping[str, Any], key: str, location: Location, default: Any = None) -> Any:
        """Return `item[key]`, or the value in the file that `item[key_in]` names, or `default` without either key.

        If the file cannot be used, record a breach at `location` and return `default`.
        """
        if key in item:
            return _numbers(item[key]) if key in _AS_GIVEN else item[key]
        if key + IN not in item:
            return default
        name = item[key + IN]
        try:
            value, size = self._known[name] if name in self._known else self._read(name)
            self._known[name] = value, size
            self.size += size  # Each use counts, because each is sent to the agent.
            if self.size > LARGEST:
                raise ValueError(f"the values of this case are larger than {LARGEST >> 20} MiB together")
            if isinstance(default, dict | list) and not isinstance(value, type(default)):
                raise ValueError(f"{name} must hold {'an object' if isinstance(default, dict) else 'a list'}")
        except ValueError as error:
            self.breaches.append(Breach((*location, key + IN), str(error), AGAIN))
            return default
        return _numbers(value) if key in _AS_GIVEN else value

    def _read(self, name: str) -> tuple[Any, int]:
        path = self.folder / name
        try:
            content = read_unlinked(path, LARGEST)
        except OSError as error:
            raise ValueError(f"{name}: {unreadable(path, error).message}") from None
        try:
            # A wrapping object, because a file of ours holds one.
            value = OwnFile(path, b'{"value":' + content + b"}", "a recorded value").value["value"]
        except (OwnFileError, KeyError):
            raise ValueError(f"{name} is damaged: it is not JSON") from None
        if digest(value) != name.removesuffix(".json"):
            raise ValueError(f"{name} was changed: its content does not match its name")
        return value, len(content)


def _numbers(value: Any) -> Any:
    """Replace the objects that `finite_json` wrote by the numbers for which they stand (NaN and infinities)."""
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {FORM, "value"} and value[FORM] == "float" and value["value"] in _NOT_FINITE:
        return float(value["value"])
    return {key: _numbers(item) for key, item in value.items()}


def _recording(value: Mapping[str, Any], beside: _Beside) -> Recording:
    origin = value["recorded"]
    return Recording(
        value["eval_set_id"],
        value["eval_id"],
        value["agent"],
        Origin(**origin),
        {tool: tuple(names) for tool, names in value.get("ignore", {}).items()},
        {agent: tuple(_declaration(tool) for tool in tools) for agent, tools in value.get("tools", {}).items()},
        tuple(_call(call, ("calls", number), beside) for number, call in enumerate(value["calls"])),
        tuple(_model(model, ("models", number), beside) for number, model in enumerate(value.get("models", ()))),
        {
            part["part"]: beside.get(part, "value", ("requests", number))
            for number, part in enumerate(value.get("requests", ()))
        },
        tuple(Ended(**one) for one in value.get("ended", ())),
    )


def _declaration(tool: Mapping[str, Any]) -> Declaration:
    lists = {name: tuple(tool.get(name, ())) for name in ("config", "types")}
    return Declaration(**{**tool, "declaration": _numbers(tool["declaration"]), "error": _error(tool), **lists})


def _call(call: Mapping[str, Any], location: Location, beside: _Beside) -> ToolCall:
    return ToolCall(
        call["turn"],
        call["agent"],
        call["tool"],
        beside.get(call, "args", location, {}),
        call.get("branch", ""),
        beside.get(call, "answer", location),
        _error(call),
        call.get("lost", ""),
        _effects(call.get("effects", {}), (*location, "effects"), beside),
        call.get("seconds"),
        call.get("secret", False),
    )


def _effects(effects: Mapping[str, Any], location: Location, beside: _Beside) -> Effects:
    artifacts = tuple(
        Artifact(
            artifact["name"],
            beside.get(artifact, "content", (*location, "artifacts", number), {}),
            artifact.get("version"),
            artifact.get("mime", ""),
        )
        for number, artifact in enumerate(effects.get("artifacts", ()))
    )
    state, actions, in_place = (beside.get(effects, name, location, {}) for name in ("state", "actions", "in_place"))
    return Effects(state, artifacts, actions, in_place)


def _model(model: Mapping[str, Any], location: Location, beside: _Beside) -> ModelCall:
    return ModelCall(
        model["turn"],
        model["agent"],
        model["asked"],
        model.get("branch", ""),
        model.get("request"),
        tuple(beside.get(model, "responses", location, [])),
        _error(model),
        model.get("lost", ""),
        model.get("seconds"),
        model.get("secret", False),
    )


def _error(call: Mapping[str, Any]) -> RecordedError | None:
    if (error := call.get("error")) is None:
        return None
    return RecordedError(tuple(error["types"]), error["message"], error.get("attributes", {}))
