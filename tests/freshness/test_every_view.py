"""Each kind of input is changed on disk in a project that was run, and every view names the same inputs.

The kinds come from the type: a new kind of input fails here until somebody adds an edit for it to `EDITS`.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, get_args

import pytest

from tests.cli.projects import REPOSITORY, Project, PutBack
from tests.freshness.edits import CHOSEN_SET, CONFIG, CONFIG_FILE, EDITS, EVALSET, Edit, fill
from tests.stored import drop_events, event_texts, forget_rows
from tests.ui.fake_view import FakeView, controllers_of
from workbench.agents.workspace import open_workspace
from workbench.events.events import CaseName
from workbench.files.run_options import RunOptions
from workbench.freshness.changes import Batch
from workbench.freshness.watcher import Watcher
from workbench.project.project import Project as Engine
from workbench.results.change_causes import Side, changed_inputs
from workbench.run.plan.plan import Plan
from workbench.run.plan.run_plan import make_plan
from workbench.run.plan.selection import Selection, Target
from workbench.run.resuming import resume
from workbench.store.database.database import run_path
from workbench.store.history.reading import load_summary
from workbench.store.history.summary import Summary
from workbench.store.inputs import Change, Input, describe, describe_few
from workbench.ui.tree.labels import Labels
from workbench.ui.tree.outline import Row

KINDS: tuple[Input, ...] = get_args(Input)
Named = set[tuple[str, str]]
"""Kind and name of each changed input."""


def _prepare(project: Project) -> None:
    fill(project)
    done = project.run("run", ".", "--plain")
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> PutBack:
    return PutBack(tmp_path_factory.mktemp("inputs"), _prepare)


@pytest.fixture
def project(kept: PutBack) -> Project:
    """A project that was run and closed."""
    return kept.project()


WATCHED = [kind for kind in EDITS if kind not in ("packages", "options")]
"""The kinds that a save can change."""


def test_every_kind_of_input_is_edited_in_a_test() -> None:
    assert set(EDITS) == set(KINDS) - {"frozen"}, "recordings have a project and tests of their own"


@pytest.mark.parametrize("kind", EDITS)
def test_status_watch_and_compare_name_the_changed_input(project: Project, kind: Input) -> None:
    edit = EDITS[kind]
    assert changes_of(project, edit) == []
    saved = saved_by(project, edit.make)
    change = {"input": kind, "name": edit.name, "file": edit.file, "effect": edit.effect}
    before = run_of(project, edit)
    changes = changes_of(project, edit)
    # Another agent has other files, too.
    assert [item for item in changes if kind != "owner" or item["input"] == kind] == [change]
    assert project.run("status", "--fail-stale").returncode == 1
    wanted = named(Change(**item) for item in changes)
    if kind in WATCHED:
        assert alike(kind, saved[evalset_of(edit), edit.case], wanted)

    project.run("run", f"{evalset_of(edit)}:{edit.case}", "--fresh", *edit.options)
    after = run_of(project, edit)
    assert before.run_id != after.run_id
    (then,), (now,) = (
        [one for one in run.executions.values() if one.ref.eval_id == edit.case] for run in (before, after)
    )
    between, unknown = changed_inputs(Side(before, then), Side(after, now))
    assert not unknown
    assert alike(kind, between, wanted)
    told = project.run("compare", before.run_id, after.run_id).stdout
    assert (edit.name if kind != "owner" else "only in B: loose/asked/chosen") in told
    assert changes_of(project, edit) == [], "the new verdict is fresh"


@pytest.mark.parametrize("kind", EDITS)
def test_screen_score_and_resume_name_the_same_inputs_as_status(
    project: Project, kind: Input, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit = EDITS[kind]
    edit.make(project)
    wanted = stale_of(project, edit)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    view = asyncio.run(opened(project))
    verdicts = view.session.verdicts
    place = verdicts.place(evalset_of(edit), edit.case)
    assert place is not None
    assert alike(kind, verdicts.stale[place], named(wanted))
    left, _ = Labels(view.rows, lambda: 0.0).pieces(Row("case", 0, *place), 300)
    assert left[-1][0] == f" stale: {describe_few(verdicts.stale[place])}"
    assert PurePosixPath(describe(verdicts.stale[place][0])).name in verdicts.stale_text[0]

    run_id = status_of(project, edit)["run_id"]
    said = project.run("score", run_id).stderr
    assert all(describe(change) in said for change in wanted), said

    told = not_resumed(project, run_id, edit)
    # A case of another agent is another case.
    assert ("is not resumed" in told) == (kind != "owner")
    assert all(describe(change) in told for change in wanted if kind != "owner"), told


@pytest.mark.parametrize(
    ("path", "stale"), [("tones/plain.txt", 3), ("tones/other.txt", 0), ("desk/unread.txt", 0), ("desk/test_x.py", 0)]
)
def test_watch_uses_files_read_in_earlier_sessions(project: Project, path: str, stale: int) -> None:
    saved = saved_by(project, lambda project: project.write(path, "other"))
    cases = json.loads(project.run("status", "--json").stdout)["cases"]
    wanted = {(case["evalset_file"], case["eval_id"]): case["changed"] for case in cases if case["stale"]}
    assert len(wanted) == stale
    assert {key: named(changes) for key, changes in saved.items()} == {
        key: {(change["input"], change["name"]) for change in changes} for key, changes in wanted.items()
    }


@pytest.mark.parametrize("key", ["criteria", "user_simulator_config"])
def test_watch_names_functions_removed_from_the_config(project: Project, key: str) -> None:
    def edit(project: Project) -> None:
        project.write(CONFIG_FILE, {name: value for name, value in CONFIG.items() if name != key})

    kind = "function" if key == "criteria" else "simulator"
    assert (kind, "judges.py") in named(saved_by(project, edit)[(EVALSET, "simulated")])


async def opened(project: Project) -> FakeView:
    """Return the screen's model after it has opened, without a terminal."""
    view = FakeView(open_workspace(project.root))
    controllers_of(view).past_results.load_verdicts()
    await view.settled()
    return view


def saved_by(project: Project, edit: Callable[[Project], object]) -> Mapping[CaseName, tuple[Change, ...]]:
    """Return the changes that a watch reports for an edit, if it starts in a newly opened project."""
    engine, workspace = Engine(project.root), open_workspace(project.root)
    engine.load_touched(workspace)
    watcher = Watcher(workspace, lambda: open_workspace(project.root), engine.touched)
    watcher.update_files()
    edit(project)
    saved = watcher.check(Batch(frozenset(), all_files=True))
    return {} if saved is None else saved.impact.changes


def not_resumed(project: Project, run_id: str, edit: Edit) -> str:
    """Return the report about a run that was interrupted before it reported its end."""
    return not_resumed_with(project, run_id, RunOptions(isolation="run" if "--isolation" in edit.options else "case"))


def not_resumed_with(project: Project, run_id: str, options: RunOptions) -> str:
    """Return the report about a run that was interrupted before it reported its end, for these options."""
    path = run_path(project.root / ".workbench", run_id)
    end = len(event_texts(path))
    drop_events(path, end)
    forget_rows(path)
    plan = make_plan(open_workspace(project.root), Selection((Target(".", project.root),)), options)
    found = resume(project.root / ".workbench", plan)
    assert isinstance(found, Plan)
    return "".join(notice.message for notice in found.notices)


def evalset_of(edit: Edit) -> str:
    return CHOSEN_SET if edit.case == "chosen" else EVALSET


def changes_of(project: Project, edit: Edit) -> list[dict[str, Any]]:
    """Return the changes that `status --json` names for the edit's case."""
    found = status_of(project, edit)
    assert found["stale"] == bool(found["changed"])
    changed: list[dict[str, Any]] = found["changed"]
    return changed


def status_of(project: Project, edit: Edit) -> dict[str, Any]:
    """Return the entry of the edit's case in `status --json`."""
    cases = json.loads(project.run("status", "--json").stdout)["cases"]
    found: dict[str, Any] = next(case for case in cases if case["eval_id"] == edit.case)
    return found


def stale_of(project: Project, edit: Edit) -> list[Change]:
    return [Change(**item) for item in changes_of(project, edit)]


def alike(kind: Input, changes: Iterable[Change], wanted: Named) -> bool:
    """Return whether the changes are as wanted.

    If the agent is another one, a view may name the files and variables of either agent as well.
    """
    found = named(changes)
    return found == wanted if kind != "owner" else ("owner", "agent") in found & wanted


def named(changes: Iterable[Change]) -> Named:
    return {(change.input, change.name) for change in changes}


def run_of(project: Project, edit: Edit) -> Summary:
    """Return the run that made the last verdict of the edit's case."""
    summary, trouble = load_summary(project.root / ".workbench", status_of(project, edit)["run_id"])
    assert not trouble
    return summary


def test_verdicts_made_with_an_option_are_fresh_until_a_run_without_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    python = str(project.root / ".venv/bin/python3")
    options = ("--isolation", "run", "--timeout", "60", "--python", python)
    assert project.run("run", ".", *options).returncode == 0
    done = project.run("status", "--fail-stale")
    assert done.returncode == 0, done.stdout
    assert asyncio.run(opened(project)).session.stale == {}
    assert "--isolation" not in project.run("score", "last").stderr
    assert project.run("status", "--fail-stale").returncode == 0, "scoring again makes no verdict with an agent"
    assert project.run("run", CHOSEN_SET).returncode == 0
    for words_of_status in (("status", "--fail-stale"), ("status", EVALSET, "--fail-stale")):
        done = project.run(*words_of_status)
        assert done.returncode == 1
        assert "greets (function) stale: packages: interpreter, --isolation" in done.stdout
