"""Commands that repeat what the screen did, read back by the real command line."""

import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.ui.conftest import case_json
from workbench.__main__ import main
from workbench.agents.workspace import Workspace, open_workspace
from workbench.cli import following
from workbench.cli.compare_command import compare_command as compare_parser
from workbench.cli.export_command import export_command as export_parser
from workbench.cli.score_command import score_command as score_parser
from workbench.cli.status_command import status_command as status_parser
from workbench.files.run_options import FrozenMode, PlaceChoice, RunOptions
from workbench.project.targets import (
    Shell,
    ShellCommand,
    command_of_plan,
    compare_command,
    export_command,
    status_command,
)
from workbench.run.plan.plan import Plan
from workbench.run.plan.run_plan import plan_cases

HOSTILE = ["plain", "a,b", "a:b", "back\\slash", "it's", "$(rm -rf ~)", "two words", "返金", "-x", "*", "line\nbreak"]
ReadBack = Callable[[ShellCommand], Plan]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    agent = tmp_path / "bots" / "desk"
    agent.mkdir(parents=True)
    (tmp_path / "bots" / ".git").mkdir()
    (agent / "agent.py").write_text("def root_agent(message, session): ...\n")
    for name, ids in {"-odd: one": HOSTILE, "two": ["plain", "last"], "blank": [" x ", "y"]}.items():
        data = {"eval_set_id": name, "eval_cases": [case_json(one) for one in ids]}
        (agent / f"{name}.evalset.json").write_text(json.dumps(data))
    (agent / "broken.evalset.json").write_text("{")
    monkeypatch.chdir(agent)
    return open_workspace(tmp_path / "bots")


@pytest.fixture
def read_back(monkeypatch: pytest.MonkeyPatch) -> ReadBack:
    """Return the plan that the command line makes of a command."""
    plans: list[Plan] = []

    def take(request: Any, state: Path | None, plan: Callable[[], Plan], **more: Any) -> int:
        plans.append(plan())
        return 0

    monkeypatch.setattr(following, "run_and_report", take)

    def read(command: ShellCommand) -> Plan:
        program, *words = shlex.split(command.line)
        assert program == "agent-workbench"
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
        return plans.pop()

    return read


def selections(workspace: Workspace) -> Iterator[set[tuple[str, str]]]:
    names = [entry.case_names for entry in workspace.evalsets if not entry.broken]
    odd = next(mine for mine in names if len(mine) == len(HOSTILE))
    yield set(odd)
    yield {odd[1], odd[2], names[-1][0]}
    yield {(file, eval_id) for file, eval_id in workspace.case_names if eval_id in (" x ", "last")}
    yield {name for name in workspace.case_names if name[1] in ("plain", "last")}
    yield from ({name} for name in odd)


def test_command_of_a_run_selects_exactly_its_cases(
    workspace: Workspace, read_back: ReadBack, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = workspace.root / ".workbench"
    for here in (Path.cwd(), workspace.root.parent):
        monkeypatch.chdir(here)
        for names in selections(workspace):
            plan = plan_cases(workspace, names, RunOptions())
            again = read_back(command_of_plan(plan, workspace, state, Shell(here)))
            assert [entry.ref for entry in again.entries] == [entry.ref for entry in plan.entries]
            assert again.options == plan.options


def test_command_for_all_cases_names_the_folder(workspace: Workspace) -> None:
    state = workspace.root / ".workbench"
    names = {name for entry in workspace.evalsets for name in (entry.case_names or [(entry.relative, "")])}
    plan = plan_cases(workspace, names, RunOptions())
    command = command_of_plan(plan, workspace, state, Shell(workspace.root))
    assert command.line == "agent-workbench run ."
    assert command_of_plan(plan, workspace, state, Shell(Path.cwd())).line.endswith(f" {workspace.root}")
    named = command_of_plan(plan, workspace, state, Shell(workspace.root, has_named_evalsets=True))
    assert len(named.arguments) == 1 + sum(not entry.broken for entry in workspace.evalsets)


@pytest.mark.parametrize(
    "options",
    [
        RunOptions(runs=5),
        RunOptions(runs=50, until_sure=0.9),
        RunOptions(runs=1, until_sure=0.125, all_votes=True),
        RunOptions(use_cache=False, max_judge_calls=0, timeout=1.5, isolation="run", allow_not_evaluated=True),
        RunOptions(concurrency=2),
        RunOptions(frozen="tools"),
        RunOptions(frozen="all", on_miss="live"),
    ],
)
def test_command_of_a_run_has_its_options(workspace: Workspace, read_back: ReadBack, options: RunOptions) -> None:
    plan = plan_cases(workspace, {min(workspace.case_names)}, options)
    state = workspace.root / "other"
    command = command_of_plan(plan, workspace, state, Shell(Path.cwd(), state))
    known = replace(options, frozen=options.frozen or "", project_frozen="")
    assert read_back(command).options == plan.options == known
    assert "--state-dir" in command.arguments


@pytest.mark.parametrize(("mode", "words"), [("tools", []), ("", ["--frozen=off"]), ("all", ["--frozen=all"])])
def test_command_overrides_the_frozen_setting_of_the_project(
    workspace: Workspace, read_back: ReadBack, mode: FrozenMode, words: list[str]
) -> None:
    (workspace.root / "pyproject.toml").write_text('[tool.agent-workbench]\nfrozen = "tools"\n')
    plan = plan_cases(workspace, {min(workspace.case_names)}, RunOptions(frozen=mode))
    command = command_of_plan(plan, workspace, workspace.root / ".workbench", Shell(Path.cwd()))
    assert [word for word in command.arguments if word.startswith("--")] == words
    assert read_back(command).options == plan.options


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (None, []),
        (PlaceChoice("cluster"), []),
        (PlaceChoice(), ["--on", "local"]),
        (PlaceChoice("second"), ["--on", "second"]),
        (PlaceChoice("second", "/mine"), ["--on", "second", "--remote-python", "/mine"]),
        (PlaceChoice("dask://h:1", env=("KEY",)), ["--on", "dask://h:1", "--env", "KEY"]),
    ],
)
def test_command_names_a_place_that_differs_from_the_projects(
    workspace: Workspace, read_back: ReadBack, place: PlaceChoice | None, words: list[str]
) -> None:
    (workspace.root / "pyproject.toml").write_text(
        '[tool.agent-workbench]\nplace = "cluster"\n[tool.agent-workbench.places.cluster]\nat = "dask://one:1"\n'
        '[tool.agent-workbench.places.second]\nat = "dask://two:1"\nremote-python = "/its"\n'
    )
    plan = plan_cases(workspace, {min(workspace.case_names)}, RunOptions(place=place))
    command = command_of_plan(plan, workspace, workspace.root / ".workbench", Shell(Path.cwd()))
    assert list(command.arguments[1 : 1 + len(words)]) == words
    assert "--on" in words or "--on" not in command.arguments
    assert read_back(command).options == plan.options


def params(parser: Any, command: ShellCommand) -> dict[str, Any]:
    found: dict[str, Any] = parser.make_context(command.arguments[0], list(command.arguments[1:])).params
    return found


def test_commands_about_runs_are_parsed(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    root, state = workspace.root, workspace.root / ".workbench"
    inside, outside = Shell(root), Shell(root.parent)
    monkeypatch.chdir(root.parent)
    compared = params(compare_parser, compare_command("run-1", "run-2", root, state, outside))
    assert (compared["words"], compared["state_dir"]) == (("run-1", "run-2"), Path("bots/.workbench"))
    assert params(compare_parser, compare_command("run-1", "run-2", root, state, inside))["state_dir"] is None
    exported = params(export_parser, export_command("run-1", root, state, inside))
    assert (exported["words"], exported["form"], exported["output"]) == (("run-1",), "html", Path("run-1.html"))
    assert params(status_parser, status_command(workspace, state, outside))["paths"] == (Path("bots"),)


def test_command_of_scoring_names_its_run_and_cases(workspace: Workspace) -> None:
    names = next(selections(workspace))
    plan = replace(plan_cases(workspace, names, RunOptions(use_cache=False)), scored_from="run-1")
    command = command_of_plan(plan, workspace, workspace.root / ".workbench", Shell(workspace.root))
    found = params(score_parser, command)
    assert (found["words"], found["cases"], found["no_cache"]) == (("run-1",), tuple(HOSTILE), True)
    several = command_of_plan(replace(plan, scored_from="run-1, run-2"), workspace, workspace.root, Shell(Path.cwd()))
    assert several.caveat == "only the first of 2 runs with these transcripts"
