"""Differences between two readings of a folder, in one line for the user."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.text.counting import counted

if TYPE_CHECKING:
    from workbench.agents.workspace.workspace import EvalsetEntry, Workspace

_NAMED = 2
"""Maximum number of files that are named one by one."""


@dataclass(frozen=True, slots=True)
class DiskChange:
    """A file or agent that others changed, with the number of its cases by what happened to them.

    `name` is raw. `file` is None for an agent. The keys of `cases` are `changed`, `new` and `gone`.
    """

    name: str
    file: Path | None
    what: str = "changed on disk"
    detail: str = ""
    cases: Counter[str] | None = None

    def text(self) -> str:
        """Return a line such as `refunds.evalset.json changed on disk: 2 cases`. Raw text."""
        told = self.detail or case_words(self.cases or Counter())
        return f"{self.name} {self.what}{f': {told}' if told else ''}"


def case_words(cases: Counter[str]) -> str:
    """Return `2 cases`, or `2 cases changed, 1 new, 1 gone`, or "" for none."""
    kinds = [kind for kind in ("changed", "new", "gone") if cases[kind]]
    if kinds == ["changed"]:
        return counted(cases["changed"], "case")
    words = [f"{cases[kind]:,} {kind}" for kind in kinds]
    if kinds:
        words[0] = f"{counted(cases[kinds[0]], 'case')} {kinds[0]}"
    return ", ".join(words)


def disk_words(changes: Collection[DiskChange]) -> str:
    """Return one line about all changes, or "" for none. Raw text."""
    if len(changes) <= _NAMED:
        return "; ".join(change.text() for change in changes)
    agents = [change for change in changes if change.file is None]
    words = [change.text() for change in agents] if len(agents) == 1 else []
    files = len(changes) - len(agents)
    total: Counter[str] = Counter()
    for change in changes:
        total.update(change.cases or {})
    told = case_words(total)
    what = [counted(len(agents), "agent")] if len(agents) > 1 else []
    what += [counted(files, "file")] if files else []
    return "; ".join([*words, f"{' and '.join(what)} changed on disk{f': {told}' if told else ''}"])


def workspace_changes(before: "Workspace", now: "Workspace") -> list[DiskChange]:
    """Return how the evalsets, criteria and agents of two readings differ."""
    return [*_evalset_changes(before, now), *_config_changes(before, now), *_agent_changes(before, now)]


def is_same(before: "Workspace", now: "Workspace") -> bool:
    """Return whether two readings would look the same on the screen."""
    if len(before.evalsets) != len(now.evalsets) or before.agents != now.agents or before.ignored != now.ignored:
        return False
    pairs = zip(before.evalsets, now.evalsets, strict=True)
    return all(
        old.relative == new.relative
        and old.owner == new.owner
        and old.criteria == new.criteria
        and same_content(old, new)
        for old, new in pairs
    )


def same_content(before: "EvalsetEntry", now: "EvalsetEntry") -> bool:
    """Return whether two readings of an evalset show the same cases and the same faults."""
    old, new = before.document, now.document
    if old is new:
        return True
    if len({(one.eval_set_id, one.name, one.broken, len(one.cases)) for one in (old, new)}) > 1:
        return False
    if not old.cases and old.faults != new.faults:  # With cases, faults depend on how much was checked.
        return False
    return all(
        one.eval_id == other.eval_id and old.text(one.index) == new.text(other.index)
        for one, other in zip(old.cases, new.cases, strict=True)
    )


def _evalset_changes(before: "Workspace", now: "Workspace") -> Iterator[DiskChange]:
    old = {entry.relative: entry for entry in before.evalsets}
    new = {entry.relative: entry for entry in now.evalsets}
    for relative, entry in new.items():
        if relative not in old:
            yield DiskChange(
                entry.file.name, entry.file, "appeared on disk", cases=Counter(new=len(entry.document.cases))
            )
        elif not same_content(old[relative], entry):
            broken = entry.document.broken and not old[relative].document.broken
            detail = "it is broken now" if broken else ""
            yield DiskChange(entry.file.name, entry.file, detail=detail, cases=_case_changes(old[relative], entry))
    for relative, entry in old.items():
        if relative not in new:
            yield DiskChange(entry.file.name, entry.file, "is gone", cases=Counter(gone=len(entry.document.cases)))


def _case_changes(before: "EvalsetEntry", now: "EvalsetEntry") -> Counter[str]:
    old, new = before.document, now.document
    places = {case.eval_id: case.index for case in old.cases}
    found: Counter[str] = Counter()
    for case in new.cases:
        place = places.pop(case.eval_id, None)
        if place is None:
            found["new"] += 1
        elif old.text(place) != new.text(case.index):
            found["changed"] += 1
    found["gone"] = len(places)
    return +found


def _config_changes(before: "Workspace", now: "Workspace") -> Iterator[DiskChange]:
    old = {entry.relative: entry.criteria.config for entry in before.evalsets}
    cases: Counter[Path] = Counter()
    for entry in now.evalsets:
        earlier, config = old.get(entry.relative), entry.criteria.config
        if earlier is not None and earlier != config and (path := config.path or earlier.path) is not None:
            cases[path] += len(entry.document.cases)
    for path, number in cases.items():
        yield DiskChange(path.name, path, detail=f"criteria of {counted(number, 'case')}")


def _agent_changes(before: "Workspace", now: "Workspace") -> Iterator[DiskChange]:
    old, new = ({agent.folder: agent.name for agent in found.agents} for found in (before, now))
    for folder in new.keys() - old.keys():
        yield DiskChange(f"agent {new[folder]}", None, "appeared on disk")
    for folder in old.keys() - new.keys():
        yield DiskChange(f"agent {old[folder]}", None, "is gone")
