"""Problems of recordings: whose they are, ignore lists, and values that cannot be replayed."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from workbench.agents.declared_tools import DeclaredTools
from workbench.agents.workspace.workspace import EvalsetEntry
from workbench.editing.check.problem import Problem
from workbench.files.faults import Breach, Location, nearest_hint
from workbench.files.frozen_path import FILE_SUFFIX, frozen_folder
from workbench.files.own_file import OwnFile, OwnFileError
from workbench.run.recordings.frozen_file import AGAIN, WHAT, frozen_content, parse_frozen
from workbench.run.recordings.frozen_schema import IN
from workbench.run.recordings.recording import Recording

_PARTS = {"instruction": 0, "tools": 0, "config": 0}
_MODEL, _CODE = "$model", "$code"
_READ = ("answer", "state", "in_place")
"""Keys of values in which a replay reads each `$form`."""


def recording_problems(entry: EvalsetEntry, tools: DeclaredTools) -> Iterator[Problem]:
    """Yield the problems of the recordings beside an evalset. `tools` are those that its agent declares."""
    folder = frozen_folder(entry.file)
    names = sorted(path for path in folder.glob(f"*{FILE_SUFFIX}")) if folder.is_dir() else []
    for path in names:
        try:
            content = frozen_content(path)
            recording = parse_frozen(path, content)
            file = OwnFile(path, content, WHAT)
            file.refuse(chain(_foreign(recording, entry), _ignored(recording, tools), _unreadable(file, path)))
        except OwnFileError as error:
            yield from (Problem("recording", fault) for fault in error.faults)


def _foreign(recording: Recording, entry: EvalsetEntry) -> Iterator[Breach]:
    owner = "" if entry.agent is None else entry.agent.name
    own = {"eval_set_id": ("" if entry.document.broken else entry.eval_set_id), "agent": owner}
    for key, expected in own.items():
        found = getattr(recording, key)
        same = _same_agent(found, expected) if key == "agent" else found == expected
        if expected and not same:
            message = f"this recording has the {key} `{found}`, but {entry.relative} has `{expected}`"
            yield Breach((key,), message, f"If the answers are right, correct it. Else: {AGAIN.lower()}", "warning")


def _same_agent(one: str, other: str) -> bool:
    """Return whether two names can be one agent seen from different roots: one path ends with the other."""
    first, second = one.split("/"), other.split("/")
    shared = min(len(first), len(second))
    return first[-shared:] == second[-shared:]


def _ignored(recording: Recording, tools: DeclaredTools) -> Iterator[Breach]:
    declared = {tool.name: 0 for agent in recording.tools.values() for tool in agent if tool.name}
    known = {**declared, **{call.tool: 0 for call in recording.calls}, **dict.fromkeys(tools.tools, 0)}
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


def _unreadable(file: OwnFile, path: Path) -> Iterator[Breach]:
    """Yield values that no replay can read. Those in files beside this one are errors of this one, too."""
    for number, call in enumerate(file.value["calls"]):
        for place, holder in ((("calls", number), call), (("calls", number, "effects"), call.get("effects", {}))):
            for key in _READ:
                if key in holder:
                    yield from _forms((*place, key), holder[key])
                elif key + IN in holder:
                    name = holder[key + IN]
                    content = frozen_content(path.with_name(name))
                    beside = OwnFile(path.with_name(name), b'{"value":' + content + b"}", "a recorded value")
                    beside.refuse(_forms(("value",), beside.value["value"]))


def _forms(place: Location, value: Any) -> Iterator[Breach]:
    """Yield each innermost object with the key `$form` that is not known or cannot be read."""
    from workbench.worker.forms import FORM, UnknownFormError, decoded

    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [breach for key, child in children for breach in _forms((*place, key), child)]
    yield from inner
    if not inner and isinstance(value, dict) and FORM in value:
        try:
            decoded(value)
        except UnknownFormError as error:
            yield Breach(place, str(error), f"Correct it, or {AGAIN.lower()}")
