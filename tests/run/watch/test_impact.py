"""The cases that a change can affect, and the effect that they need."""

from pathlib import Path

import pytest

from tests.run.watch.conftest import ALONE, Shop, turn
from workbench.freshness import impact as impact_module
from workbench.freshness.impact import Saves, impact
from workbench.store.inputs import KINDS, Kind


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "desk/README.md",
        "desk/talk.triage.json",
        "docs/guide.md",
        "pyproject.toml",
        "notes.txt",
        "desk/tests/test_agent.py",
    ],
)
@pytest.mark.parametrize("seen", [True, False], ids=["seen", "never ran"])
def test_unread_file_runs_nothing(shop: Shop, name: str, seen: bool) -> None:
    found = shop.changes(lambda: shop.write(name, "new\n"), name, seen=seen)
    assert found.depths == {}
    assert found.idle == {shop.root / name}


def test_shared_module_runs_exactly_its_two_agents(shop: Shop) -> None:
    name = "shared/words.py"
    found = shop.changes(lambda: shop.write(name, "def reply(message):\n    return ''\n"), name)
    assert found.depths == dict.fromkeys(shop.keys(["desk", "router"]), "run")
    assert {change.name for changes in found.changes.values() for change in changes} == {name}


def test_before_the_first_run_imports_show_the_affected_agents(shop: Shop) -> None:
    found = shop.changes(lambda: shop.write("shared/words.py", "\n"), "shared/words.py", seen=False)
    assert set(found.depths) == shop.keys(["desk", "router"])


@pytest.mark.parametrize("name", ["desk/agent.py", "desk/prompt.txt"])
def test_before_the_first_run_another_agents_file_runs_only_agents_that_name_it(shop: Shop, name: str) -> None:
    shop.write("greeter/agent.py", f"# the agent reads prompt.txt\n{ALONE}")
    shop.write("router/agent.py", "from desk.agent import root_agent\n")
    found = shop.changes(lambda: shop.write(name, ALONE), name, seen=False)
    assert set(found.depths) == shop.keys(["desk", "router"])


def test_module_in_an_agents_folder_runs_only_that_agent(shop: Shop) -> None:
    found = shop.changes(lambda: shop.write("desk/agent.py", ALONE), "desk/agent.py")
    assert found.depths == dict.fromkeys(shop.keys(["desk"]), "run")


def test_new_module_in_the_agents_folder_counts(shop: Shop) -> None:
    found = shop.changes(lambda: shop.write("desk/tools.py", "x = 1\n"), "desk/tools.py")
    assert set(found.depths) == shop.keys(["desk"])


def test_file_written_by_an_agent_runs_nothing(shop: Shop) -> None:
    notes = shop.write("desk/notes.json", "1")
    for agent in ("desk", "router"):
        shop.touched[shop.root / agent].files.add(notes)
    before = shop.snapshot()
    shop.write("desk/notes.json", "2")
    shop.touched[shop.root / "desk"].written.add(notes)
    saves = Saves(frozenset([notes]), touched=shop.touched)
    found = impact(before, shop.snapshot(), saves)
    assert set(found.depths) == shop.keys(["router"])


def test_data_file_counts_only_if_it_was_read(shop: Shop) -> None:
    for name in ("desk/prompt.txt", "desk/other.txt", "data/prices.csv"):
        shop.write(name, "old\n")
    shop.touched[shop.root / "desk"].files |= {shop.root / "desk/prompt.txt", shop.root / "data/prices.csv"}
    read = shop.changes(lambda: shop.write("desk/prompt.txt", "new\n"), "desk/prompt.txt")
    assert set(read.depths) == shop.keys(["desk"])
    outside = shop.changes(lambda: shop.write("data/prices.csv", "new\n"), "data/prices.csv")
    assert set(outside.depths) == shop.keys(["desk"])
    not_read = shop.changes(lambda: shop.write("desk/other.txt", "new\n"), "desk/other.txt")
    assert not_read.depths == {}


def test_deleted_read_file_counts(shop: Shop) -> None:
    found = shop.changes((shop.root / "shared/words.py").unlink, "shared/words.py")
    assert set(found.depths) == shop.keys(["desk", "router"])


def test_env_file_affects_the_agents_below_it(shop: Shop) -> None:
    found = shop.changes(lambda: shop.write("desk/.env", "GREETING=hello\n"), "desk/.env")
    assert found.depths == dict.fromkeys(shop.keys(["desk"]), "run")
    same = shop.changes(lambda: shop.write("desk/.env", "# a word\nGREETING=hello\n"), "desk/.env")
    assert same.depths == {}
    everybody = shop.changes(lambda: shop.write(".env", "GREETING=good day\n"), ".env")
    assert set(everybody.depths) == shop.keys(["router", "greeter"]), "the desk has one of its own"


def test_only_changed_cases_run(shop: Shop) -> None:
    found = shop.changes(
        lambda: shop.cases("desk", one=turn("one"), two=turn("something else"), three=turn("three")),
        "desk/talk.evalset.json",
    )
    assert found.depths == dict.fromkeys(found.edited, "run")
    assert found.edited == shop.keys(["desk"], "two", "three")
    assert found.gone == set()


def test_changed_reference_is_only_scored_again(shop: Shop) -> None:
    found = shop.changes(
        lambda: shop.cases("desk", one=turn("one", "another answer"), two=turn("two")), "desk/talk.evalset.json"
    )
    assert found.depths == {("desk/talk.evalset.json", "one"): "score"}


def test_layout_and_order_are_not_changes(shop: Shop) -> None:
    found = shop.changes(lambda: shop.cases("desk", two=turn("two"), one=turn("one")), "desk/talk.evalset.json")
    assert found.depths == {}
    path = shop.root / "desk/talk.evalset.json"
    spaced = shop.changes(lambda: path.write_text(path.read_text().replace(": ", " :  ")), "desk/talk.evalset.json")
    assert spaced.depths == {}


def test_deleted_case_is_reported(shop: Shop) -> None:
    found = shop.changes(lambda: shop.cases("desk", one=turn("one")), "desk/talk.evalset.json")
    assert (found.depths, found.gone) == ({}, shop.keys(["desk"], "two"))


def test_broken_evalset_runs_nothing(shop: Shop) -> None:
    found = shop.changes(lambda: shop.write("desk/talk.evalset.json", '{"eval_set_id": '), "desk/talk.evalset.json")
    assert found.depths == {}


def judged_by(model: str) -> dict[str, object]:
    return {"threshold": 0.5, "judge_model_options": {"judge_model": model}}


@pytest.mark.parametrize(
    ("before", "after", "depth"),
    [
        ({"response_match_score": 0.8}, {"response_match_score": 0.5}, "decide"),
        (
            {"tool_trajectory_avg_score": {"threshold": 1.0}},
            {"tool_trajectory_avg_score": {"threshold": 1.0, "match_type": "IN_ORDER"}},
            "decide",
        ),
        ({"final_response_match_v2": 0.8}, {"final_response_match_v2": 0.5}, "decide"),
        ({"response_match_score": 0.8, "safety_v1": 0.8}, {"response_match_score": 0.8}, "decide"),
        ({"response_match_score": 0.8}, {"response_match_score": 0.8, "final_response_match_v2": 0.5}, "score"),
        (
            {"final_response_match_v2": {"threshold": 0.5}},
            {"final_response_match_v2": {"threshold": 0.5, "judge_model_options": {"judge_model": "python:a:b"}}},
            "score",
        ),
        ({"response_match_score": 0.8}, {"response_match_score": {"threshold": 0.8}}, None),
    ],
)
def test_config_never_runs_the_agent(
    shop: Shop, before: dict[str, object], after: dict[str, object], depth: str | None
) -> None:
    shop.criteria("desk", **before)
    found = shop.changes(lambda: shop.criteria("desk", **after), "desk/test_config.json")
    assert found.depths == ({} if depth is None else dict.fromkeys(shop.keys(["desk"]), depth))


def test_custom_metric_is_scored_again_for_a_new_threshold(shop: Shop) -> None:
    def config(threshold: float) -> None:
        custom = {"brief": {"code_config": {"name": "desk.metrics.brief"}}}
        shop.write("desk/test_config.json", {"criteria": {"brief": threshold}, "custom_metrics": custom})

    config(0.5)
    found = shop.changes(lambda: config(0.6), "desk/test_config.json")
    assert found.depths == dict.fromkeys(shop.keys(["desk"]), "score")


@pytest.mark.parametrize(
    "config",
    [
        {"criteria": {"final_response_match_v2": judged_by("python:shared.judges:strict")}},
        {"criteria": {"brief": 0.5}, "custom_metrics": {"brief": {"code_config": {"name": "shared.judges.brief"}}}},
    ],
)
def test_judging_function_scores_its_cases_again(shop: Shop, config: dict[str, object]) -> None:
    shop.write("desk/test_config.json", config)
    shop.write("shared/judges.py", "def strict(question): ...\n")
    found = shop.changes(lambda: shop.write("shared/judges.py", "def strict(question): pass\n"), "shared/judges.py")
    assert found.depths == dict.fromkeys(shop.keys(["desk"]), "score")
    assert not found.idle


def test_function_that_plays_the_user_runs_scenarios(shop: Shop) -> None:
    shop.scenario_and_fixed()
    config = {"criteria": {}, "user_simulator_config": {"model": "python:shared.judges:user"}}
    shop.write("desk/test_config.json", config)
    shop.write("shared/judges.py", "def user(question): ...\n")
    found = shop.changes(lambda: shop.write("shared/judges.py", "def user(question): pass\n"), "shared/judges.py")
    assert found.depths == {("desk/talk.evalset.json", "simulated"): "run"}
    assert not found.idle


def test_changed_file_of_an_added_kind_of_input_runs_the_cases(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    fixtures = shop.root / "fixtures.json"
    monkeypatch.setitem(KINDS, "function", Kind("run", "fixtures ", "name"))
    monkeypatch.setattr(impact_module, "other_files", lambda config, root, folder: {"function": [fixtures]})
    shop.write("fixtures.json", "{}")
    found = shop.changes(lambda: shop.write("fixtures.json", "[]"), "fixtures.json")
    assert found.depths == dict.fromkeys(shop.snapshot().workspace.case_names, "run")
    assert not found.idle


def test_new_file_in_a_listed_folder_counts(shop: Shop) -> None:
    shop.touched[shop.root / "desk"].folders.add(shop.root / "data")
    found = shop.changes(lambda: shop.write("data/new.csv", "1\n"), "data/new.csv")
    assert set(found.depths) == shop.keys(["desk"])
    changed = shop.changes(lambda: shop.write("data/new.csv", "2\n"), "data/new.csv")
    assert changed.depths == {}, "its name is what counts"


def test_config_above_affects_evalsets_without_their_own(shop: Shop) -> None:
    shop.criteria("desk", response_match_score=0.8)
    found = shop.changes(
        lambda: shop.write("test_config.json", {"criteria": {"response_match_score": 0.1}}), "test_config.json"
    )
    assert set(found.depths) == shop.keys(["router", "greeter"])


def test_broken_config_changes_no_verdict(shop: Shop) -> None:
    shop.criteria("desk", response_match_score=0.8)
    found = shop.changes(lambda: shop.write("desk/test_config.json", '{"criteria": '), "desk/test_config.json")
    assert found.depths == {}


def test_changed_simulated_user_runs_the_scenarios(shop: Shop) -> None:
    shop.scenario_and_fixed()
    shop.criteria("desk", response_match_score=0.8)
    content = {"criteria": {"response_match_score": 0.8}, "user_simulator_config": {"max_allowed_invocations": 3}}
    found = shop.changes(lambda: shop.write("desk/test_config.json", content), "desk/test_config.json")
    assert found.depths == {("desk/talk.evalset.json", "simulated"): "run"}


def test_settings_and_themes_affect_only_the_screen(shop: Shop) -> None:
    settings = shop.write("desk/config.toml", 'theme = "paper"\n')
    before = shop.snapshot()
    settings.write_text('theme = "night"\n')
    saves = Saves(frozenset([settings]), touched=shop.touched, screen_files=[settings])
    found = impact(before, shop.snapshot(), saves)
    assert (found.depths, found.screen_only, found.idle) == ({}, {settings}, set())


def test_strongest_effect_wins(shop: Shop) -> None:
    def work() -> None:
        shop.criteria("desk", response_match_score=0.1)
        shop.write("desk/agent.py", ALONE)

    found = shop.changes(work, "desk/test_config.json", "desk/agent.py")
    assert found.depths == dict.fromkeys(shop.keys(["desk"]), "run")
    changed = {(change.name, change.effect) for changes in found.changes.values() for change in changes}
    assert {name for name, effect in changed if effect == "run"} == {"desk/agent.py"}


def test_changed_owner_runs_the_cases(shop: Shop, tmp_path: Path) -> None:
    shop.write(
        "talks/any.evalset.json",
        {
            "eval_set_id": "any",
            "eval_cases": [
                {"eval_id": "one", "conversation": [turn("one")], "session_input": {"app_name": "desk", "user_id": "u"}}
            ],
        },
    )
    path = tmp_path / "talks/any.evalset.json"
    found = shop.changes(lambda: path.write_text(path.read_text().replace("desk", "router")), "talks/any.evalset.json")
    assert found.depths == {("talks/any.evalset.json", "one"): "run"}
