"""The grammar of targets, and the hints for unknown names."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.run.project import Project, evalset, turn
from workbench.agents.workspace import EvalsetEntry, Workspace
from workbench.files.run_options import UsageFaultError
from workbench.run.plan.selection import (
    Chosen,
    Selection,
    Target,
    choose,
    escape,
    open_selection,
    parse_target,
    parse_targets,
)


def choose_in(workspace: Workspace, selection: Selection) -> list[Chosen[EvalsetEntry]]:
    return choose(selection, workspace.root, workspace.evalsets, workspace.ignored)


Choose = Callable[..., dict[str, list[str]]]


@pytest.fixture
def shop(project: Project) -> Project:
    """Two agents with evalsets, an ID that is not its file's name, and a test file."""
    for agent in ("desk", "team"):
        project.agent("def root_agent(message, session): return 'ok'\n", agent)
    project.write("desk/refunds.evalset.json", evalset("refunds", {name: [turn("hi")] for name in ("a", "b", "c:1,d")}))
    project.write("desk/greet.test.json", evalset("greet", {"hello": [turn("hi")]}))
    project.write("team/data/routes.evalset.json", evalset("the_routes", {"north": [turn("hi")], "a": [turn("hi")]}))
    project.write("team/notes.json", evalset("notes", {"n": [turn("hi")]}))
    return project


@pytest.fixture
def chosen(shop: Project) -> Choose:
    """Choose with words, and return file → case IDs."""

    def pick(*words: str, agent: str | None = None, cases: tuple[str, ...] = ()) -> dict[str, list[str]]:
        selection = parse_targets(words, folder=shop.root, agent=None if agent is None else Path(agent), case_ids=cases)
        workspace = open_selection(selection, folder=shop.root)
        return {item.entry.relative: ids(item) for item in choose_in(workspace, selection)}

    return pick


def ids(item: Chosen[EvalsetEntry]) -> list[str]:
    cases = item.entry.document.cases
    return [case.eval_id for case in cases if item.indexes is None or case.index in item.indexes]


REFUNDS, GREET, ROUTES = "desk/refunds.evalset.json", "desk/greet.test.json", "team/data/routes.evalset.json"
ALL = ["a", "b", "c:1,d"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["."], {GREET: ["hello"], REFUNDS: ALL, ROUTES: ["north", "a"]}),
        (["desk"], {GREET: ["hello"], REFUNDS: ALL}),
        (["team/data"], {ROUTES: ["north", "a"]}),
        ([REFUNDS], {REFUNDS: ALL}),
        ([f"{REFUNDS}:b,a"], {REFUNDS: ["a", "b"]}),
        ([f"{REFUNDS}: b , a,"], {REFUNDS: ["a", "b"]}),
        ([rf"{REFUNDS}:c\:1\,d"], {REFUNDS: ["c:1,d"]}),
        ([rf"{REFUNDS}:c:1\,d"], {REFUNDS: ["c:1,d"]}),
        ([REFUNDS, f"{REFUNDS}:b"], {REFUNDS: ["b"]}),
        ([f"{REFUNDS}:a", f"{REFUNDS}:b"], {REFUNDS: ["a", "b"]}),
        (["refunds"], {REFUNDS: ALL}),
        (["refunds:a"], {REFUNDS: ["a"]}),
        (["the_routes:north"], {ROUTES: ["north"]}),
        (["routes"], {ROUTES: ["north", "a"]}),
        (["team/notes.json"], {"team/notes.json": ["n"]}),
        (["desk", "refunds"], {REFUNDS: ALL}),
        (["desk/__init__.py", "refunds:a", GREET], {REFUNDS: ["a"], GREET: ["hello"]}),
        (["desk", "team/data"], {GREET: ["hello"], REFUNDS: ALL, ROUTES: ["north", "a"]}),
        (["team", REFUNDS], {REFUNDS: ALL}),
    ],
)
def test_targets_select_cases(chosen: Choose, words: list[str], expected: dict[str, list[str]]) -> None:
    assert chosen(*words) == expected


def test_case_option_restricts_all_targets(chosen: Choose) -> None:
    assert chosen(".", cases=("a",)) == {REFUNDS: ["a"], ROUTES: ["a"]}
    assert chosen(f"{REFUNDS}:a,b", cases=("a",)) == {REFUNDS: ["a"]}


def test_first_word_names_the_agent(shop: Project) -> None:
    for selection in (
        parse_targets(["team", REFUNDS], folder=shop.root),
        parse_targets([REFUNDS], folder=shop.root, agent=Path("team")),
    ):
        (entry,) = open_selection(selection, folder=shop.root).evalsets
        assert entry.agent is not None
        assert entry.agent.name == "team"


def test_word_that_is_a_whole_path_is_read_as_a_path(shop: Project) -> None:
    odd = shop.write("desk/a:b.json", evalset("odd", {"x": [turn("hi")]}))
    assert parse_target("desk/a:b.json", shop.root) == Target("desk/a:b.json", odd)
    assert parse_target("desk/a:b.json:x", shop.root) == Target("desk/a:b.json", odd, ("x",))
    assert parse_target(r"desk/a\:b.json:x", shop.root).path == odd


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["desk/refund.evalset.json"], "desk/refund.evalset.json does not exist", "refunds.evalset.json"),
        (["nowhere/refunds.evalset.json"], "does not exist", "The folder"),
        (
            ["refund"],
            "refund is not a file, a folder or the id of an evalset",
            "Did you mean refunds?",
        ),
        (["xyz"], "xyz is not a file", "Evalsets: "),
        ([f"{REFUNDS}:A"], "has no case A", "Did you mean a?"),
        ([f"{REFUNDS}:xyz"], "has no case xyz", "Cases: a, b, c:1,d"),
        ([f"{REFUNDS}:c"], "has no case c", "Cases: "),
        ([f"{REFUNDS}:"], "names no case", "For all cases"),
        ([f"{REFUNDS}: , ,"], "names no case", "For all cases"),
    ],
)
def test_unknown_word_is_refused_with_the_nearest_name(
    chosen: Choose, words: list[str], message: str, hint: str
) -> None:
    with pytest.raises(UsageFaultError) as refused:
        chosen(*words)
    assert message in str(refused.value)
    assert hint in refused.value.hint
    assert refused.value.kind == "usage"


def test_unknown_cases_and_agents_are_refused(chosen: Choose) -> None:
    with pytest.raises(UsageFaultError, match="no case nroth") as refused:
        chosen(".", cases=("a", "nroth"))
    assert refused.value.hint == "Did you mean north?"
    with pytest.raises(UsageFaultError, match="a target is empty"):
        chosen("desk", "")
    with pytest.raises(UsageFaultError, match="team/data is not an agent"):
        chosen(".", agent="team/data")


def test_hint_lists_only_selected_cases(chosen: Choose) -> None:
    with pytest.raises(UsageFaultError) as refused:
        chosen("desk/refunds.evalset.json:a", cases=("b",))
    assert refused.value.hint == "Cases: a"


def test_hint_for_a_missing_file_names_the_one_in_the_agents_folder(chosen: Choose) -> None:
    with pytest.raises(UsageFaultError) as refused:
        chosen("desk", "refunds.evalset.json")
    assert refused.value.hint == "Did you mean desk/refunds.evalset.json?"


def test_empty_folder_is_refused(shop: Project) -> None:
    (shop.root / "empty").mkdir()
    selection = parse_targets(["empty"], folder=shop.root)
    with pytest.raises(UsageFaultError, match="no evalset in empty") as refused:
        choose_in(open_selection(selection, folder=shop.root), selection)
    assert refused.value.kind == "nothing"


def test_ambiguous_evalset_id_is_refused(chosen: Choose, shop: Project) -> None:
    shop.write("team/refunds.evalset.json", evalset("refunds", {"z": [turn("hi")]}))
    with pytest.raises(UsageFaultError, match="2 evalsets are called refunds") as refused:
        chosen("refunds")
    assert REFUNDS in refused.value.hint
    assert chosen("desk", "refunds") == {REFUNDS: ALL}


def test_paths_are_relative_to_the_given_folder(shop: Project) -> None:
    assert parse_target("refunds.evalset.json", shop.root / "desk").path == shop.root / REFUNDS
    absolute = str(shop.root / REFUNDS)
    assert parse_target(absolute, Path(os.sep)).path == Path(absolute)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case_ids=st.lists(st.text(min_size=1).filter(lambda text: text.strip() == text), min_size=1, max_size=5))
def test_any_case_id_can_be_escaped(tmp_path: Path, case_ids: list[str]) -> None:
    file = tmp_path / "s.evalset.json"
    file.touch()
    word = "s.evalset.json:" + ",".join(map(escape, case_ids))
    assert parse_target(word, tmp_path) == Target("s.evalset.json", file, tuple(case_ids))


def test_many_case_ids_may_be_longer_than_a_file_name(tmp_path: Path) -> None:
    file = tmp_path / "s.evalset.json"
    file.touch()
    ids = tuple(f"case_{number}" for number in range(100))
    assert parse_target("s.evalset.json:" + ",".join(ids), tmp_path) == Target("s.evalset.json", file, ids)


def test_marked_cases_form_a_selection(shop: Project) -> None:
    file = shop.root / REFUNDS
    selection = Selection((Target(REFUNDS, file, ("b", "c:1,d")),))
    (item,) = choose_in(open_selection(selection, folder=shop.root), selection)
    assert item.indexes == (1, 2)
    assert item.named
