"""The command `check`: problems in evalsets, criteria and agents, found before they cost a run."""

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from workbench.cli import common_options as common
from workbench.cli.refusal import Refused
from workbench.cli.streams import has_failed, warn, write_line
from workbench.files.run_options import PlaceChoice
from workbench.text.counting import counted
from workbench.text.safe_text import one_line, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from workbench.agents.workspace import Workspace
    from workbench.editing.check.problem import Problem
    from workbench.project.check_findings import PlaceCheck

_CLEAN, _WARNINGS, _ERRORS = 0, 1, 2

_DESCRIPTION = """Find problems in evalsets, criteria and agents before they cost a run. Reads files only: runs no
agent and asks no model. Imports extensions of other packages. With --import, also imports each agent in a child
process with the agent's own interpreter. With --on, does so on each worker of a cluster.

\b
PATH  a folder, an agent's folder or an evalset file  [default: this folder]

\b
Exit codes
    0  no problems
    1  warnings: probably a mistake; or nothing to check
    2  errors: a run would be refused; or the command line is wrong
"""


@common.command("check", _DESCRIPTION, "Find problems before they cost a run.")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=common.FILE)
@common.CONFIG
@click.option("--import", "imports", is_flag=True, help="Import each agent in a child process and report failures.")
@click.option("--on", metavar="PLACE", help="Try PLACE: show what would travel, and import each agent on each worker.")
@click.option("--list", "lists", is_flag=True, help="With --on: only print each file that would travel.")
@common.REMOTE_PYTHON
@common.ENV
@common.AS_JSON
@common.STATE_DIR
def check_command(
    paths: tuple[Path, ...],
    config: Path | None,
    imports: bool,
    on: str | None,
    remote_python: str,
    env: tuple[str, ...],
    lists: bool,
    as_json: bool,
    state_dir: Path | None,
) -> int:
    """Check a project and return the exit code."""
    _refuse_missing(paths, config)
    choice = _choice(on, remote_python, env, lists=lists)
    from workbench.agents.workspace import open_workspace, root_of
    from workbench.editing.check.project import ProjectCheck, in_order
    from workbench.project.check_findings import extension_problems
    from workbench.store.owners import read_owners

    check, problems = ProjectCheck(), []

    def tell(workspace: "Workspace", found: "list[Problem]") -> None:
        problems.extend(found)
        if not as_json:
            _tell(workspace, found)

    named = paths or (Path(),)
    owners = read_owners(common.project_state(root_of(named), state_dir))
    try:
        workspace = open_workspace(
            *named,
            config=config,
            stored_owners=owners,
            on_evalset=lambda read: tell(read, check.evalset(read.evalsets[-1], read.root)),
        )
    except FileNotFoundError as error:
        raise Refused(str(error)) from None
    for warning in workspace.warnings:
        warn(warning)
    tell(workspace, check.rest(workspace))
    tell(workspace, extension_problems())
    if imports:
        _import_agents(workspace, lambda problem: tell(workspace, [problem]))
    place = None if choice is None else _check_place(workspace, choice, state_dir, only_files=lists)
    if place is not None:
        if not as_json:
            write_line(sys.stdout, "\n".join(_place_lines(place, lists=lists)))
        tell(workspace, place.problems)
    if as_json:
        from workbench.project.command_reports import report_text

        found = _report(workspace, in_order(problems))
        write_line(sys.stdout, report_text("check", **found, place=place and _place_report(place)))
    else:
        _sum_up(workspace, problems)
    severities = {problem.fault.severity for problem in problems}
    if has_failed() or "error" in severities:
        return _ERRORS
    return _CLEAN if workspace.evalsets and not severities - {"note"} else _WARNINGS


def _choice(on: str | None, remote_python: str, env: tuple[str, ...], *, lists: bool) -> PlaceChoice | None:
    choice = common.place_choice(on, remote_python, env)
    if lists and choice is None:
        message = "--list prints the files that would travel to a place, but no place is named"
        raise Refused(message, hint="Add --on PLACE")
    return choice


def _refuse_missing(paths: tuple[Path, ...], config: Path | None) -> None:
    if config is not None and not config.is_file():
        raise Refused(f"--config {config} is not a file" if config.exists() else f"--config {config} does not exist")
    for path in paths:
        if not path.exists():
            raise Refused(f"{path} does not exist")


def _import_agents(workspace: "Workspace", tell: "Callable[[Problem], None]") -> None:
    """Import each agent, and report each failure as soon as it happens."""
    import asyncio  # Slow to import, and only needed here.

    from workbench.editing.check.agent_rules import import_problem
    from workbench.project.project import Project

    async def import_all() -> None:
        async with Project(keep_warm=False) as project:
            async for outcome in project.import_agents(workspace):
                problem = import_problem(outcome)
                if problem is not None:
                    tell(problem)

    asyncio.run(import_all())


def _check_place(
    workspace: "Workspace", choice: PlaceChoice, state_dir: Path | None, *, only_files: bool
) -> "PlaceCheck | None":
    """Check a place. Return None if it is this machine."""
    import asyncio

    from workbench.cli.following import ask, say_line
    from workbench.project.check_findings import check_place, place_of
    from workbench.project.project import Project

    chosen = place_of(choice, workspace.root)
    if chosen.is_local:
        return None

    async def check() -> "PlaceCheck":
        async with Project(state_dir=state_dir, keep_warm=False) as project:
            return await check_place(project, workspace, chosen, only_files=only_files, ask=ask, tell=say_line)

    return asyncio.run(check())


def _place_lines(place: "PlaceCheck", *, lists: bool) -> "Iterator[str]":
    """Yield lines about a place: its workers, and what would travel, with `lists` file by file."""
    from workbench.results.machines import machine_facts, sending_lines

    if place.sending is not None and lists:
        yield from (one_line(name, limit=1000) for name in place.sending.sizes)
        left_out = place.sending.left_out.items()
        yield from (f"stays: {one_line(name, limit=1000)}: {one_line(why)}" for name, why in left_out)
    elif place.sending is not None:
        yield from sending_lines(place.sending)
    if place.needs:
        yield f"workers need {', '.join(f'{name} {version}' for name, version in place.needs.items())}"
    for state in place.machines:
        imported = [agent for agent, outcome in place.imports.items() if outcome.get(state.name) == ""]
        yield machine_facts(state, imported)


def _place_report(place: "PlaceCheck") -> dict[str, object]:
    sending = place.sending
    return {
        "place": "" if sending is None else sending.place,
        "address": "" if sending is None else sending.address,
        "encrypted": sending is not None and sending.is_encrypted,
        "files": {} if sending is None else dict(sending.sizes),
        "left_out": {} if sending is None else dict(sending.left_out),
        "variables": [] if sending is None else list(sending.variables),
        "needs": dict(place.needs),
        "workers": [
            {
                "name": state.name,
                "usable": state.phase == "ready",
                "about": state.about,
                "why": state.why,
                "imported": {agent: outcome.get(state.name) for agent, outcome in place.imports.items()},
            }
            for state in place.machines
        ],
    }


def _tell(workspace: "Workspace", problems: "list[Problem]") -> None:
    for problem in problems:
        fault = problem.fault
        where = one_line(fault.where(_shown(workspace, fault.file)), limit=1000)
        write_line(sys.stdout, _indented(f"{fault.severity}: {where}: {fault.message} [{problem.rule}]"))
        if fault.hint:
            write_line(sys.stdout, _indented(f"    {fault.hint}"))


def _indented(text: str) -> str:
    """Make foreign text safe, and indent its further lines, so none of them looks like another problem."""
    return plain(text).replace("\n", "\n    ")


def _sum_up(workspace: "Workspace", problems: "list[Problem]") -> None:
    if not workspace.evalsets:
        write_line(sys.stderr, plain(f"No evalsets in {workspace.target}"))
        return
    summary = _summary(workspace, problems)
    found = f"{counted(summary['errors'], 'error')}, {counted(summary['warnings'], 'warning')}"
    if not summary["errors"] and not summary["warnings"]:
        found = "no problems"
    checked = f"{counted(summary['files'], 'evalset file')}, {counted(summary['cases'], 'case')}"
    write_line(sys.stderr, f"{checked}: {found}")


def _report(workspace: "Workspace", problems: "list[Problem]") -> dict[str, object]:
    return {
        "root": str(workspace.root),
        "summary": _summary(workspace, problems),
        "problems": [
            {
                "severity": problem.fault.severity,
                "rule": problem.rule,
                "file": _shown(workspace, problem.fault.file),
                "line": problem.fault.line or None,
                "column": problem.fault.column or None,
                "json_path": problem.fault.json_path,
                "message": problem.fault.message,
                "hint": problem.fault.hint,
            }
            for problem in problems
        ],
    }


def _summary(workspace: "Workspace", problems: "list[Problem]") -> dict[str, int]:
    counts = Counter(problem.fault.severity for problem in problems)
    return {
        "files": len(workspace.evalsets),
        "cases": sum(len(entry.document.cases) for entry in workspace.evalsets),
        "errors": counts["error"],
        "warnings": counts["warning"],
        "notes": counts["note"],
    }


def _shown(workspace: "Workspace", file: Path) -> str:
    from workbench.files.walk import relative_to

    return relative_to(file, workspace.root)
