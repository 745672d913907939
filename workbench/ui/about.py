"""Pages about an agent, and about a folder in which there is nothing to run."""

from typing import TYPE_CHECKING

from workbench.actions import BY_ID, key_label
from workbench.text import one_line
from workbench.ui.tree.labels import label
from workbench.ui.widgets.overview import Line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workbench.agents.discovery import AgentFolder
    from workbench.agents.workspace import EvalsetEntry, Workspace

_KINDS = {"python": "Python", "yaml": "YAML"}


def about_agent(workspace: "Workspace", agent: "AgentFolder", entries: "Sequence[EvalsetEntry]") -> list[Line]:
    """Where an agent is, what defines it and which criteria judge it."""
    lines = [
        ("folder", _below(workspace, agent.folder)),
        ("defined by", f"{agent.attribute or 'the whole file'} in {_below(workspace, agent.definition)}"),
        ("kind", _KINDS[agent.kind]),
        ("evalsets", str(len(entries)) if entries else "none yet: a *.evalset.json or *.test.json beside the agent"),
    ]
    for reason in dict.fromkeys(entry.criteria.reason for entry in entries):
        lines.append(("criteria", one_line(reason)))
        config = next(entry.criteria.config for entry in entries if entry.criteria.reason == reason)
        lines += [("", f"{'':12}{label(item.name)}  ≥ {item.threshold:g}") for item in config.criteria]
    if faults := [fault for entry in entries for fault in entry.criteria.config.faults]:
        lines += [("", ""), ("faults in the criteria", "")]
        lines += [("", one_line(text)) for text in dict.fromkeys(fault.sentence() for fault in faults)]
    return lines


def about_nothing(workspace: "Workspace", keys: "Mapping[str, tuple[str, ...]]") -> list[Line]:
    """Why there is nothing to run, and the way out."""
    palette = key_label(keys["palette"][0]) if keys["palette"] else "the palette"
    leave = key_label(keys["quit"][0]) if keys["quit"] else "ctrl+c"
    folder = one_line(str(workspace.target))
    lines: list[Line] = []
    if workspace.agents:
        names = ", ".join(label(agent.name) for agent in workspace.agents[:5])
        lines += [
            (f"No evalsets in {folder}", ""),
            ("", ""),
            ("", f"There are agents ({names}), but nothing to ask them yet."),
            (
                "",
                "Evalsets are files called *.evalset.json or *.test.json, beside the agent or elsewhere below.",
            ),
        ]
    else:
        lines += [
            (f"No agents and no evalsets in {folder}", ""),
            ("", ""),
            ("", "An agent is a folder with root_agent or app in agent.py or __init__.py, or with a root_agent.yaml."),
            ("", "An evalset is a file called *.evalset.json or *.test.json."),
            ("", ""),
            ("", "To look around with the sample agents: agent-workbench sample_agents in a checkout of the project."),
        ]
    if workspace.ignored:
        lines += [("", ""), ("passed over", f"{len(workspace.ignored)} files and folders")]
        lines += [
            ("", f"{'':12}{_below(workspace, item.path)}: {one_line(item.reason)}") for item in workspace.ignored[:8]
        ]
    lines += [("", ""), ("", f"{palette} then '{BY_ID['reload'].label}' looks again; {leave} leaves.")]
    return lines


def _below(workspace: "Workspace", path: object) -> str:
    return one_line(str(path)).removeprefix(one_line(str(workspace.root)) + "/")
