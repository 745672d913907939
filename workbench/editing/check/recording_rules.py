"""Rules for recordings: another owner, ignore lists for unknown tools, values that no replay can read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.agents.declared_tools import DeclaredTools
from workbench.agents.workspace import EvalsetEntry
from workbench.editing.check.problem import Problem
from workbench.files.faults import Breach, Fault, Location, nearest_hint
from workbench.files.frozen_path import FILE_SUFFIX, frozen_folder
from workbench.files.own_file import OwnFile, OwnFileError
from workbench.run.recordings.frozen_file import AGAIN, WHAT, frozen_content, parse_frozen
from workbench.run.recordings.frozen_schema import IN
from workbench.run.recordings.recording import Recording
from workbench.worker.value_forms import FORM, UnknownFormError, decoded

_PARTS = ("instruction", "tools", "config")
_MODEL, _CODE = "$model", "$code"
_READ = ("answer", "state", "in_place")
"""Keys of values in which a replay decodes objects with `$form`."""


def recording_problems(entry: EvalsetEntry, tools: DeclaredTools) -> Iterator[Problem]:
    """Yield the problems of the recordings beside an evalset. `tools` are the tools that its agent declares."""
    for path in sorted(frozen_folder(entry.file).glob(f"*{FILE_SUFFIX}")):
        try:
            faults = _faults(path, entry, tools)
        except OwnFileError as error:
            faults = list(error.faults)
        yield from (Problem("recording", fault) for fault in faults)


def _faults(path: Path, entry: EvalsetEntry, tools: DeclaredTools) -> list[Fault]:
    """Return the faults of a recording and of the value files that it refers to.

    Raises:
        OwnFileError: one of these files cannot be read, or is damaged.
    """
    content = frozen_content(path)
    recording = parse_frozen(path, content)
    file = OwnFile(path, content, WHAT)
    breaches = [*_foreign(recording, entry), *_ignored(recording, tools)]
    beside: set[str] = set()
    for number, call in enumerate(file.value["calls"]):
        for place, holder in ((("calls", number), call), (("calls", number, "effects"), call.get("effects", {}))):
            for key in _READ:
                if key in holder:
                    breaches += _forms((*place, key), holder[key])
                elif key + IN in holder:
                    beside.add(holder[key + IN])
    faults = list(file.faults(breaches))
    for name in sorted(beside):
        value_path = path.with_name(name)
        value = OwnFile(value_path, b'{"value":' + frozen_content(value_path) + b"}", "a recorded value")
        faults += value.faults(_forms(("value",), value.value["value"]))
    return faults


def _foreign(recording: Recording, entry: EvalsetEntry) -> Iterator[Breach]:
    owner = "" if entry.agent is None else entry.agent.name
    own = {"eval_set_id": ("" if entry.document.broken else entry.eval_set_id), "agent": owner}
    for key, expected in own.items():
        found = getattr(recording, key)
        same = _same_agent(found, expected) if key == "agent" else found == expected
        if expected and not same:
            message = f"this recording has the {key} `{found}`, but {entry.relative} has `{expected}`"
            hint = f"If the answers are right, correct `{key}`. Else: {AGAIN.lower()}"
            yield Breach((key,), message, hint, "warning")


def _same_agent(one: str, other: str) -> bool:
    """Return whether two names may be paths of the same agent from different roots: one ends with the other."""
    first, second = one.split("/"), other.split("/")
    shared = min(len(first), len(second))
    return first[-shared:] == second[-shared:]


def _ignored(recording: Recording, tools: DeclaredTools) -> Iterator[Breach]:
    declared = {tool.name for agent in recording.tools.values() for tool in agent if tool.name}
    known = declared | {call.tool for call in recording.calls} | set(tools.tools)
    for tool, names in recording.ignore.items():
        if tool == _MODEL:
            for number, name in enumerate(names):
                if name not in _PARTS:
                    hint = nearest_hint(name, _PARTS, f"Parts are {', '.join(_PARTS)}")
                    yield Breach(("ignore", tool, number), f"requests have no part `{name}`", hint, "warning")
        elif tool not in known and tool != _CODE:
            message = f"`{tool}` is not a tool of this recording or of its agent, so nothing is ignored"
            hint = nearest_hint(tool, known, "Delete it")
            yield Breach(("ignore", tool), message, hint, "warning", on_key=True)


def _forms(place: Location, value: Any) -> Iterator[Breach]:
    """Yield a problem for each innermost object with the key `$form` that is not known or cannot be read."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [breach for key, child in children for breach in _forms((*place, key), child)]
    yield from inner
    if not inner and isinstance(value, dict) and FORM in value:
        try:
            decoded(value)
        except UnknownFormError as error:
            yield Breach(place, str(error), f"Correct it, or {AGAIN.lower()}")
