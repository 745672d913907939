"""Pages of the right side: an agent, the folder, filters without matches, and folders without cases or agents."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.content import Content

from workbench.files.folders import shortened
from workbench.text.counting import counted, few, threshold
from workbench.text.safe_text import one_line
from workbench.ui.actions import BY_ID, key_label
from workbench.ui.tree.labels import label
from workbench.ui.widgets.basics import Line
from workbench.ui.widgets.footer import bindings
from workbench.ui.widgets.rows import Piece, RowsOf

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workbench.agents.discovery import AgentFolder
    from workbench.agents.workspace import EvalsetEntry, Workspace
    from workbench.ui.tree.verdicts import ImportResults


_NAMED = 5
"""Maximum number of agents, folders or files that a line names."""
_MOST_IGNORED = 1000
"""Maximum number of ignored paths that are looked up on the disk."""
_KINDS = {"python": "Python", "yaml": "YAML"}


def agent_page(
    workspace: "Workspace", agent: "AgentFolder", entries: "Sequence[EvalsetEntry]", imports: "ImportResults"
) -> list[Line]:
    """Return the page of an agent: its folder, definition, evalsets, import result, criteria and problems."""
    lines = [
        ("folder", _below(workspace, agent.folder)),
        ("defined by", f"{agent.attribute or 'the whole file'} in {_below(workspace, agent.definition)}"),
        ("kind", _KINDS[agent.kind]),
        ("evalsets", str(len(entries) or "none yet; add a *.evalset.json or *.test.json beside the agent")),
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
    """Return lines about an agent's problems: why it cannot be imported, and faults in its criteria."""
    lines: list[tuple[str, str]] = []
    if failed := imports.failed.get(agent.name):
        lines.append(("import", f"failed: {one_line(failed.message)}"))
        lines += [("", one_line(failed.hint))] if failed.hint else []
    if faults := [fault for entry in entries for fault in entry.criteria.config.faults]:
        lines.append(("Problems in the criteria", ""))
        lines += [("", one_line(text)) for text in dict.fromkeys(fault.sentence() for fault in faults)]
    return lines


def workspace_page(workspace: "Workspace", keys: "Mapping[str, tuple[str, ...]]") -> list[Line]:
    """Return the page of the folder: how to run its cases, its agents and evalsets, and its problems."""
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
    """Return the help about filters. `unrepeated`: the filter is for flaky cases, and no case was repeated."""
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
    """Return the page of a folder that has agents but no evalsets."""
    names = few((label(agent.name) for agent in workspace.agents_here), _NAMED)
    lines: list[Line] = [
        (f"No evalsets in {one_line(shortened(workspace.target))}", ""),
        ("", ""),
        ("", f"Agents found: {names}. There are no cases yet."),
        ("", "Evalsets are files called *.evalset.json or *.test.json, in the agent's folder or elsewhere below."),
    ]
    if keys["talk"]:
        text = "to talk to an agent. You can keep the conversation as the first case."
        lines += [("", ""), ("", f"Press {key_label(keys['talk'][0])} {text}")]
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


class NothingFound(RowsOf[tuple[str, str]]):
    """The page of an empty folder, which offers actions such as copying the sample agents.

    A row has the ID of its action, or "" for lines of text, and the text.
    """

    DEFAULT_CSS = """
    NothingFound {
        display: none;
        padding: 1 1 0 1;
        border: round $border;
        border-title-color: $label-strong;
        border-title-style: bold;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("move_down", "move_up", "page_down", "page_up", "top", "bottom", "enter")
    ]

    def __init__(self, run: Callable[[str], Awaitable[object]]) -> None:
        """Create the page. `run` runs an action of the main screen."""
        super().__init__()
        self._run = run
        self.border_title = Content("No agents here yet")

    def show(self, workspace: "Workspace") -> None:
        """Show the page for this workspace."""
        self.rows = list(nothing_found(workspace))
        self.rows_changed()
        self.move_to(self.cursor)

    def can_stop(self, position: int) -> bool:
        """Return whether the row has an action."""
        return bool(self.rows[position][0])

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return the text of a row."""
        return [(self.rows[position][1], "")], []

    async def action_enter(self) -> None:
        """Run the action under the cursor."""
        await self._run(BY_ID[self.row[0]].call)

    action_move = RowsOf.move


def nothing_found(workspace: "Workspace") -> Iterator[tuple[str, str]]:
    """Yield the rows of the page of an empty folder."""
    folder = one_line(shortened(workspace.target))
    searched = sum(path.is_relative_to(workspace.target) for path in workspace.searched)
    yield "", f"No agent or evalset found in {folder} (searched {counted(searched, 'folder')})."
    yield from (("", line) for line in _ignored(workspace))
    yield "", ""
    yield "try_samples", f"Try the sample agents (copied to {folder}/sample_agents)"
    yield "open_folder", "Open another folder"
    yield "keys", "What makes a folder an agent"
    yield "", ""
    yield "", "The screen updates when an agent appears."


def _ignored(workspace: "Workspace") -> Iterator[str]:
    ignored = [item for item in workspace.ignored if not item.evalset][:_MOST_IGNORED]
    folders = [item.path for item in ignored if item.path.is_dir()]
    if folders:
        names = few((one_line(path.name, limit=60) for path in folders), _NAMED)
        yield f"{counted(len(folders), 'folder')} ignored: {names}"
    if workspace.look_alikes:
        names = few((one_line(path.name, limit=60) for path in workspace.look_alikes), _NAMED)
        yield f"Evalsets under other names: {names}. To open one, choose '{BY_ID['ignored'].label}' in the palette."
