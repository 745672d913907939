"""The quick lookup refuses exactly the names that the full lookup refuses, with the same message."""

from pathlib import Path

import pytest

from tests.run.project import Project, evalset, turn
from workbench.files.run_options import UsageFaultError
from workbench.run.plan.selection import choose, open_selection, parse_targets, refuse_unknown

REFUNDS = "desk/refunds.evalset.json"


@pytest.fixture
def shop(project: Project) -> Project:
    """Two agents, an ID that is not its file's name, and an evalset outside of both."""
    for agent in ("desk", "team"):
        project.agent("def root_agent(message, session): return 'ok'\n", agent)
    project.write(REFUNDS, evalset("refunds", {name: [turn("hi")] for name in ("a", "b", "c:1,d")}))
    project.write("team/data/routes.evalset.json", evalset("the_routes", {"north": [turn("hi")], "é": [turn("hi")]}))
    project.write("loose.test.json", evalset("loose", {"l": [turn("hi")]}))
    return project


def at_a_glance(project: Project, *words: str, cases: tuple[str, ...] = ()) -> tuple[str, str] | None:
    """Return the refusal of the quick lookup with its hint, or None."""
    try:
        refuse_unknown(parse_targets(words, folder=project.root, case_ids=cases), project.root)
    except UsageFaultError as fault:
        return str(fault), fault.hint
    return None


def after_opening(project: Project, *words: str, cases: tuple[str, ...] = ()) -> tuple[str, str] | None:
    """Return the refusal of the full lookup, which opens the files."""
    selection = parse_targets(words, folder=project.root, case_ids=cases)
    try:
        opened = open_selection(selection, folder=project.root)
        choose(selection, opened.root, opened.evalsets, opened.ignored)
    except UsageFaultError as fault:
        return str(fault), fault.hint
    return None


@pytest.mark.parametrize(
    ("words", "cases"),
    [
        (["refund"], ()),
        (["the_route:north"], ()),
        (["routes:nroth"], ()),
        (["the_routes:e"], ()),
        ([f"{REFUNDS}:A"], ()),
        ([f"{REFUNDS}:a", f"{REFUNDS}:z"], ()),
        (["."], ("nroth",)),
        (["."], ("a", "z")),
        (["team/data"], ("a",)),
        ([REFUNDS, "loose.test.json"], ("north",)),
        ([f"{REFUNDS}:a"], ("b",)),
    ],
)
def test_unknown_names_are_refused_before_files_are_opened(
    shop: Project, words: list[str], cases: tuple[str, ...]
) -> None:
    refused = at_a_glance(shop, *words, cases=cases)
    assert refused is not None
    assert refused == after_opening(shop, *words, cases=cases)


@pytest.mark.parametrize(
    ("words", "cases"),
    [
        (["refunds"], ()),
        (["the_routes:é"], ()),
        (["routes"], ()),
        ([rf"{REFUNDS}:c\:1\,d,a"], ()),
        (["."], ("a", "north", "l")),
        (["desk", "refunds"], ("a",)),
        (["desk", "."], ("north",)),
        (["team"], ("l",)),
    ],
)
def test_names_that_may_exist_are_left_to_the_full_lookup(
    shop: Project, words: list[str], cases: tuple[str, ...]
) -> None:
    assert at_a_glance(shop, *words, cases=cases) is None


@pytest.mark.parametrize(
    "content",
    [
        '{"eval_set_id": "new", "eval_cases": [',
        '{"eval_cases": [{"eval_id": "z", "conversation": []}]}',
        '{"eval_set_id": "new", "eval_cases": [{"evalid": "z", "conversation": []}]}',
        '[{"name": "z", "data": []}]',
        "null",
        "\udc00",
    ],
)
def test_unclear_file_is_left_to_the_full_lookup(shop: Project, content: str) -> None:
    (shop.root / "new.evalset.json").write_bytes(content.encode("utf-8", "surrogatepass"))
    assert at_a_glance(shop, "z") is None
    assert at_a_glance(shop, "new.evalset.json:z") is None
    assert at_a_glance(shop, ".", cases=("z",)) is None


def test_large_files_are_left_to_the_full_lookup(shop: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    assert at_a_glance(shop, "refund")
    monkeypatch.setattr("workbench.run.plan.selection.MOST_BYTES", 10)
    assert at_a_glance(shop, "refund") is None


def test_folder_without_evalsets_has_no_ids(tmp_path: Path) -> None:
    project = Project(tmp_path)
    assert at_a_glance(project, "refunds") == after_opening(project, "refunds")
    assert at_a_glance(project, ".", cases=("a",)) is None, "nothing to run is no mistake of the command line"
