"""Changing criteria in a config file: one value, member or line at a time, everything else as the user wrote it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.atomic import replace_content
from workbench.model.json_nodes import Child, Node
from workbench.model.scanner import scan

_BOM = b"\xef\xbb\xbf"


class EditError(ValueError):
    """A file cannot be changed without touching what was not meant; it is as it was. The text is raw."""


@dataclass(frozen=True, slots=True)
class CriterionChange:
    """What a criterion is to be. `on` False takes it out. `match_type` None leaves the way of comparing alone."""

    name: str
    on: bool = True
    threshold: float = 1.0
    match_type: str | None = None


def save_criteria(file: Path, changes: Iterable[CriterionChange]) -> None:
    """Makes the changes in the file, which is read now and replaced as a whole.

    Raises:
        EditError: see `edited`, or the file is not UTF-8.
        OSError: it cannot be read or written.
    """
    content = file.read_bytes()
    mark = _BOM if content.startswith(_BOM) else b""
    try:
        text = content[len(mark) :].decode("utf-8")
    except UnicodeDecodeError as error:
        raise EditError(f"{file}: not UTF-8 ({error.reason})") from None
    try:
        after = edited(text, changes)
    except EditError as error:
        raise EditError(f"{file}: {error}") from None
    replace_content(file, mark + after.encode("utf-8"))


def new_config(file: Path, criteria: Iterable[CriterionChange]) -> None:
    """Writes a config with these criteria where there is none yet.

    Raises:
        OSError: there is a file already, or it cannot be written.
    """
    wanted = {change.name: _value(change) for change in criteria if change.on}
    with file.open("x", encoding="utf-8") as out:
        out.write(json.dumps({"criteria": wanted}, indent=2, ensure_ascii=False) + "\n")


def edited(text: str, changes: Iterable[CriterionChange]) -> str:
    """The config's text with the changes made.

    Raises:
        EditError: the text is not in order, has no object `criteria`, or cannot be changed without side effects
            (a key that stands twice).
    """
    for change in changes:
        criteria = _criteria(text)
        after = _change(text, criteria, change)
        _check(text, after, change)
        text = after
    return text


def _criteria(text: str) -> Node:
    found = scan(text)
    if found.root is None or any(flaw.severity == "error" for flaw in found.flaws):
        raise EditError("it is not in order, so nothing is changed in it")
    child = found.root.member("criteria") if found.root.kind == "object" else None
    if child is None or child.node.kind != "object":
        raise EditError("it has no object `criteria`")
    return child.node


def _change(text: str, criteria: Node, change: CriterionChange) -> str:
    child = criteria.member(change.name)
    if not change.on:
        return text if child is None else _without(text, criteria, child)
    if child is None:
        return _with(text, criteria, change.name, json.dumps(_value(change)))
    node = child.node
    if node.kind != "object":
        return _put(text, node, json.dumps(_value(change)))
    threshold = node.member("threshold")
    if threshold is None:
        text = _with(text, node, "threshold", json.dumps(change.threshold))
    elif threshold.node.value() != change.threshold:
        text = _put(text, threshold.node, json.dumps(change.threshold))
    if change.match_type is None:
        return text
    # The tree is that of the text before: read it again, now that the threshold may have moved the rest.
    member = _criteria(text).member(change.name)
    assert member is not None
    match = member.node.member("match_type") or member.node.member("matchType")
    if match is None:
        return _with(text, member.node, "match_type", json.dumps(change.match_type))
    return _put(text, match.node, json.dumps(change.match_type))


def _value(change: CriterionChange) -> Any:
    """A criterion that stood nowhere, or as a number only."""
    if change.match_type in (None, "EXACT"):
        return change.threshold
    return {"threshold": change.threshold, "match_type": change.match_type}


def _put(text: str, node: Node, value: str) -> str:
    return text[: node.start] + value + text[node.end :]


def _with(text: str, node: Node, key: str, value: str) -> str:
    """A member more at the end of an object, laid out like its last one."""
    member = f"{json.dumps(key)}: {value}"
    if not node.children:
        return text[: node.start] + "{" + member + "}" + text[node.end :]
    last = node.children[-1]
    before = node.children[-2].node.end if len(node.children) > 1 else node.start + 1
    blank = text[before : last.key_start].rpartition(",")[2]
    return f"{text[: last.node.end]},{blank or ' '}{member}{text[last.node.end :]}"


def _without(text: str, node: Node, child: Child) -> str:
    """A member less, with its comma and its line."""
    place = next(number for number, one in enumerate(node.children) if one is child)
    if len(node.children) == 1:
        return text[: node.start] + "{}" + text[node.end :]
    if place + 1 < len(node.children):
        return text[: child.key_start] + text[node.children[place + 1].key_start :]
    return text[: node.children[place - 1].node.end] + text[child.node.end :]


def _check(before: str, after: str, change: CriterionChange) -> None:
    """The last word: the new text says what was wanted, and nothing else has changed."""
    old, new = json.loads(before), json.loads(after)
    was, value = old["criteria"].pop(change.name, None), new["criteria"].pop(change.name, None)
    if old != new or (value is None) == change.on or (change.on and _others(was) != _others(value)):
        raise EditError(f"{change.name} cannot be changed without changing something else")
    threshold = value.get("threshold") if isinstance(value, dict) else value
    if change.on and threshold != change.threshold:
        raise EditError(f"the threshold of {change.name} stands in a form that cannot be changed")


def _others(value: Any) -> dict[str, Any]:
    """What a criterion says besides threshold and match type."""
    members = value if isinstance(value, dict) else {}
    return {key: item for key, item in members.items() if key not in ("threshold", "match_type", "matchType")}
