"""Plans: their order and criteria, and requests that are refused."""

import sys
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from tests.run.project import Project, evalset, turn
from workbench.files.run_options import RunOptions, UsageFaultError
from workbench.run.plan import plan as planning
from workbench.run.plan.plan import new_run_id
from workbench.run.plan.run_plan import make_plan
from workbench.run.plan.selection import Selection, Target, open_selection
from workbench.run.plan.source import AgentSource

AGENT = "def root_agent(message, session): return 'ok'\n"


@pytest.fixture
def desk(project: Project) -> Project:
    project.agent(AGENT)
    project.write("desk/a.evalset.json", evalset("a", {"one": [turn("hi")], "two": [turn("hi")]}))
    project.write("desk/z.test.json", evalset("z", {"quick": [turn("hi")]}))
    return project


def named(project: Project, relative: str) -> Target:
    return Target(relative, project.root / relative)


@pytest.mark.parametrize(
    ("file", "agent", "warned"),
    [
        ("desk/a.evalset.json", "other", True),
        ("desk/a.evalset.json", "desk", False),
        ("shared/b.evalset.json", "other", False),
        ("desk/parts/c.evalset.json", "desk", False),
        ("desk/a.evalset.json", "desk/parts", False),
    ],
)
def test_evalset_in_another_agents_folder_is_a_warning(desk: Project, file: str, agent: str, warned: bool) -> None:
    for folder in ("other", "desk/parts"):
        desk.write(f"{folder}/agent.py", AGENT)
    for relative in ("shared/b.evalset.json", "desk/parts/c.evalset.json"):
        desk.write(relative, evalset("more", {"one": [turn("hi")]}))
    selection = Selection((named(desk, file),), desk.root / agent)
    plan = make_plan(open_selection(selection, folder=desk.root), selection, RunOptions())
    told = [notice.message for notice in plan.notices]
    assert (f"{file} is in the folder of desk but runs with {agent}" in told) == warned
    assert any("is in the folder" in message for message in told) == warned


def test_test_files_come_first_and_repeats_follow_each_other(desk: Project) -> None:
    plan = desk.plan(RunOptions(runs=2))
    assert [(entry.ref.eval_id, entry.ref.repeat) for entry in plan.entries] == [
        *(("quick", 1), ("quick", 2)),
        *(("one", 1), ("one", 2)),
        *(("two", 1), ("two", 2)),
    ]
    first = plan.entries[0].ref
    assert (first.agent, first.evalset_file, first.eval_set_id) == ("desk", "desk/z.test.json", "z")


def test_each_entry_has_its_criteria_and_the_reason(desk: Project) -> None:
    (entry, *_) = desk.plan().entries
    assert [criterion.name for criterion in entry.config.criteria] == [
        "tool_trajectory_avg_score",
        "response_match_score",
    ]
    desk.write("desk/test_config.json", {"criteria": {"response_match_score": 0.5}})
    plan = desk.plan()
    assert plan.entries[0].planned.config_file == "desk/test_config.json"
    assert [criterion.threshold for criterion in plan.entries[0].config.criteria] == [0.5]
    assert "test_config.json" in plan.entries[0].planned.criteria_source


def test_agents_get_their_interpreter_and_environment(desk: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.write("desk/.env", "MODEL=small\n")
    monkeypatch.setenv("REGION", "north")
    setting = desk.plan().agents["desk"]
    assert setting.interpreter.path == Path(sys.executable)
    spec = setting.spec()
    assert (spec["name"], spec["folder"], spec["root"]) == ("desk", str(desk.root / "desk"), str(desk.root))
    assert spec["env"]["MODEL"] == "small"
    assert spec["env"]["REGION"] == "north"


@pytest.mark.parametrize("python", ["no/such/python", "desk/a.evalset.json"])
def test_wrong_interpreter_is_refused(desk: Project, python: str) -> None:
    with pytest.raises(UsageFaultError, match="--python"):
        desk.plan(RunOptions(python=desk.root / python))


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"criteria": {"response_mach_score": 0.5}}, "response_mach_score"),
        ({"criteria": {"response_match_score": None}}, "response_match_score"),
        ({"criteria": {"tool_trajectory_avg_score": {"threshold": 1.0, "match_type": "SOMEHOW"}}}, "SOMEHOW"),
        ('{"criteria": {"response_match_score": 0.5,}}', "comma"),
    ],
)
def test_wrong_config_blocks_only_its_cases(desk: Project, config: object, words: str) -> None:
    desk.agent(AGENT, "other")
    desk.write("other/b.evalset.json", evalset("b", {"sound": [turn("hi")]}))
    desk.write("desk/test_config.json", config)
    for targets in ((), (named(desk, "desk/a.evalset.json"),)):
        entries = desk.plan(None, *targets).entries
        blocked = [entry for entry in entries if entry.blocked is not None]
        assert {entry.ref.evalset_file.partition("/")[0] for entry in blocked} == {"desk"}
        for entry in blocked:
            assert entry.blocked is not None
            assert entry.blocked.kind == "config"
            assert entry.blocked.message.startswith("desk/test_config.json:1")
            assert words in entry.blocked.message
            assert entry.ref.eval_id
        others = [entry.ref.eval_id for entry in entries if entry.blocked is None]
        assert others == ([] if targets else ["sound"])


def test_named_broken_file_refuses_the_run_with_all_faults(desk: Project) -> None:
    content = evalset("b", {"x": [turn("hi")], "y": [turn("hi")]})
    for case in content["eval_cases"]:
        del case["conversation"][0]["user_content"]
    desk.write("desk/b.evalset.json", content)
    with pytest.raises(UsageFaultError) as refused:
        desk.plan(None, named(desk, "desk/b.evalset.json"))
    lines = str(refused.value).splitlines()
    assert len(lines) == 2
    assert all(line.startswith("desk/b.evalset.json:1:") for line in lines)
    assert refused.value.kind == "broken_file"


def test_broken_file_found_in_a_folder_becomes_one_error_entry(desk: Project) -> None:
    content = evalset("b", {"x": [turn("hi")], "x2": [turn("hi")]})
    content["eval_cases"][1]["eval_id"] = "x"
    desk.write("desk/b.evalset.json", content)
    entries = [entry for entry in desk.plan().entries if entry.blocked is not None]
    (entry,) = entries
    assert entry.ref.evalset_file == "desk/b.evalset.json"
    assert entry.ref.eval_id == ""
    assert isinstance(entry.source, AgentSource)
    assert entry.source.index is None
    assert entry.blocked is not None
    assert entry.blocked.kind == "broken_file"
    assert "desk/b.evalset.json" in entry.blocked.message


def test_evalset_without_an_agent_is_refused_if_named_and_an_error_if_found(desk: Project) -> None:
    desk.agent(AGENT, "other")
    desk.write("tests/orphan.evalset.json", evalset("orphan", {"lost": [turn("hi")]}))
    with pytest.raises(UsageFaultError, match="belongs to no agent") as refused:
        desk.plan(None, named(desk, "tests/orphan.evalset.json"))
    assert "--agent" in refused.value.hint
    (entry,) = [entry for entry in desk.plan().entries if entry.ref.eval_set_id == "orphan"]
    assert entry.ref.agent == ""
    assert entry.ref.eval_id == "lost"
    assert entry.blocked is not None
    assert entry.blocked.kind == "no_agent"


def test_evalset_without_cases_is_refused(desk: Project) -> None:
    desk.write("desk/empty.evalset.json", evalset("empty", {}))
    with pytest.raises(UsageFaultError, match="no cases") as refused:
        desk.plan(None, named(desk, "desk/empty.evalset.json"))
    assert refused.value.kind == "nothing"
    assert {entry.ref.eval_set_id for entry in desk.plan().entries} == {"a", "z"}


def test_warnings_name_file_and_line(desk: Project) -> None:
    desk.write("desk/test_config.json", {"criteria": {"response_match_score": 1.5}})
    content = evalset("a", {"one": [turn("hi")]})
    content["unheard_of"] = 1
    desk.write("desk/a.evalset.json", content)
    notices = [notice.message for notice in desk.plan().notices]
    assert any(message.startswith("desk/test_config.json:1:") for message in notices)
    assert any("unheard_of" in message and "desk/a.evalset.json" in message for message in notices)


def test_expectations_that_no_criterion_compares_are_one_notice_for_each_file(desk: Project) -> None:
    desk.write("desk/test_config.json", {"criteria": {"response_match_score": 0.5}})
    content = evalset("a", {"one": [turn("hi")], "two": [turn("hi")], "three": [turn("hi")]})
    for case in content["eval_cases"][:2]:
        case["final_session_state"] = {"total": 1}
    desk.write("desk/a.evalset.json", content)
    told = [notice.message for notice in desk.plan().notices if "no criterion" in notice.message]
    assert told == ["desk/a.evalset.json: 2 cases with `final_session_state`, which no criterion compares"]
    chosen = desk.plan(RunOptions(runs=3), Target("desk/a.evalset.json", desk.root / "desk/a.evalset.json", ("three",)))
    assert not any("no criterion" in notice.message for notice in chosen.notices)


def test_run_ids_sort_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock(datetime):
        at = datetime(2026, 11, 22, 4, 51, 43, 999_999, UTC)

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return cls.at

    monkeypatch.setattr(planning, "datetime", Clock)
    assert new_run_id() == "2026-11-22T04-51-43-ffff"
    Clock.at += timedelta(microseconds=1)
    assert new_run_id() == "2026-11-22T04-51-44-0000"
    Clock.at += timedelta(microseconds=16)
    assert new_run_id() == "2026-11-22T04-51-44-0001"


@pytest.mark.parametrize(
    "options", [{"runs": 0}, {"concurrency": 0}, {"timeout": 0}, {"timeout": float("nan")}, {"timeout": float("inf")}]
)
def test_options_out_of_range_are_refused(options: dict[str, float]) -> None:
    (name,) = options
    with pytest.raises(UsageFaultError, match=f"--{name}"):
        RunOptions(**options)  # type: ignore[arg-type]
