"""Pages of facts for the right side: an agent, the workspace, and a folder without cases."""

from typing import TYPE_CHECKING

from workbench.files.home import shortened
from workbench.text.counting import counted, few, threshold
from workbench.text.safe_text import one_line
from workbench.ui.actions import key_label
from workbench.ui.tree.labels import label
from workbench.ui.widgets.page import Line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workbench.agents.discovery import AgentFolder
    from workbench.agents.workspace import EvalsetEntry, Workspace
    from workbench.ui.tree.import_results import ImportResults

_NAMED = 5
_KINDS = {"python": "Python", "yaml": "YAML"}


def agent_page(
    workspace: "Workspace", agent: "AgentFolder", entries: "Sequence[EvalsetEntry]", imports: "ImportResults"
) -> list[Line]:
    """Describe an agent: its folder, its definition, whether it can be imported, and its criteria."""
    lines = [
        ("folder", _below(workspace, agent.folder)),
        ("defined by", f"{agent.attribute or 'the whole file'} in {_below(workspace, agent.definition)}"),
        ("kind", _KINDS[agent.kind]),
        (
            "evalsets",
            str(len(entries)) if entries else "none yet; add a *.evalset.json or *.test.json beside the agent",
        ),
    ]
    if agent.name in imports.imported and agent.name not in imports.failed:
        lines.append(("import", "succeeded"))
    for reason in dict.fromkeys(entry.criteria.reason for entry in entries):
        lines.append(("criteria", one_line(reason)))
        config = next(entry.criteria.config for entry in entries if entry.criteria.reason == reason)
        lines += [("", f"{label(item.name)} ≥ {threshold(item.threshold)}") for item in config.criteria]
    problems = agent_problems(agent, entries, imports)
    return [*lines, *([("", "")] if problems else []), *problems]


def agent_problems(
    agent: "AgentFolder", entries: "Sequence[EvalsetEntry]", imports: "ImportResults"
) -> list[tuple[str, str]]:
    """Say why an agent cannot be imported, and what is wrong in its criteria."""
    lines: list[tuple[str, str]] = []
    if failed := imports.failed.get(agent.name):
        lines.append(("import", f"failed: {one_line(failed.message)}"))
        lines += [("", one_line(failed.hint))] if failed.hint else []
    if faults := [fault for entry in entries for fault in entry.criteria.config.faults]:
        lines.append(("Problems in the criteria", ""))
        lines += [("", one_line(text)) for text in dict.fromkeys(fault.sentence() for fault in faults)]
    return lines


def workspace_page(workspace: "Workspace", keys: "Mapping[str, tuple[str, ...]]") -> list[Line]:
    """Say how to run the cases, and describe the folder."""
    cases = sum(len(entry.document.cases) for entry in workspace.evalsets)
    first = [(key_label(keys["run"][0]), f"run {counted(cases, 'case')}"), ("", "")] if keys["run"] and cases else []
    entries = workspace.evalsets
    broken = [entry for entry in entries if entry.document.broken]
    loose = [entry for entry in entries if entry.agent is None]
    lines = [
        *first,
        ("folder", one_line(shortened(workspace.target))),
        ("agents", ", ".join(dict.fromkeys(label(entry.agent.name) for entry in entries if entry.agent)) or "none"),
        ("evalsets", f"{len(entries):,} with {counted(cases, 'case')}"),
    ]
    lines += [("broken", f"{one_line(entry.relative)}: {_first_fault(entry)}") for entry in broken]
    lines += [
        ("no agent", f"{one_line(entry.relative)}: {one_line(entry.agent_reason, limit=2000)}") for entry in loose
    ]
    lines += [
        ("other name", f"{_below(workspace, path)}: open it from the palette") for path in workspace.look_alikes[:8]
    ]
    if workspace.ignored:
        lines.append(("ignored", f"{counted(len(workspace.ignored), 'path')}, listed in the palette"))
    return lines


def no_match_page(keys: "Mapping[str, tuple[str, ...]]", *, unrepeated: bool = False) -> list[Line]:
    """Explain the parts of a filter. `unrepeated`: it asks for flaky cases, and none ran more than once."""
    repeat = f" Repeat cases with {key_label(keys['repeat'][0])}." if keys["repeat"] else ""
    flaky = "Only repeats can show that a case is flaky, and no case was repeated in its last run."
    return [
        *([("", flaky + repeat), ("", "")] if unrepeated else []),
        ("Parts of a filter", ""),
        ("text", "a part of the name of a case, evalset or agent"),
        (":fail", "a verdict; several mean any of them"),
        ("resp<0.8", "the score of a criterion, by a part of its name"),
        ("cause:NAME", "why cases fail"),
        ("", ""),
        ("", "A case must match all parts."),
    ]


def no_evalsets_page(workspace: "Workspace", keys: "Mapping[str, tuple[str, ...]]") -> list[Line]:
    """Explain why there is nothing to run although there are agents, and what to do about it."""
    names = few((label(agent.name) for agent in workspace.agents_here), _NAMED)
    lines: list[Line] = [
        (f"No evalsets in {one_line(shortened(workspace.target))}", ""),
        ("", ""),
        ("", f"Agents found: {names}. There are no cases yet."),
        ("", "Evalsets are files called *.evalset.json or *.test.json, in the agent's folder or elsewhere below."),
    ]
    if keys["talk"]:
        talk = key_label(keys["talk"][0])
        lines += [
            ("", ""),
            ("", f"Press {talk} to talk to an agent. You can keep the conversation as the first case."),
        ]
    if workspace.ignored:
        lines += [("", ""), ("ignored", counted(len(workspace.ignored), "path"))]
        lines += [("", f"{_below(workspace, item.path)}: {one_line(item.reason)}") for item in workspace.ignored[:8]]
    return [*lines, ("", ""), ("", "The screen updates when an evalset appears.")]


def _first_fault(entry: "EvalsetEntry") -> str:
    errors = [fault for fault in entry.document.faults if fault.severity == "error"]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return one_line(f"{errors[0].message}{more}") if errors else "broken"


def _below(workspace: "Workspace", path: object) -> str:
    return one_line(str(path)).removeprefix(one_line(str(workspace.root)) + "/")
