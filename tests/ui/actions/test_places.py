"""The footer and the help of each place of the main screen."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from workbench.ui.actions import BY_ID, Situation, actions_in, footer_of, key_label, keymap, offered, place_of, why_not
from workbench.ui.actions.conditions import _CONDITIONS
from workbench.ui.actions.table import PLACES, labelled

KEYS = keymap().keys
MAIN = [action.id for action in actions_in("main")]
RAN = Situation(verdicts=True, problems=True)
ON_CASE = replace(RAN, row="case", case_shown=True)


def number(cases: int) -> Callable[[str], int]:
    """Return a scope of this many cases for every action."""
    return lambda action: cases


def line(at: Situation) -> str:
    return "   ".join(f"{key_label(action.keys[0])} {action.label}" for action in footer_of(at, KEYS))


@pytest.mark.parametrize(
    ("at", "footer"),
    [
        (Situation("reading", row="", count=number(0)), "r run when read   w watch   q quit   : find   ? help"),
        (Situation(count=number(35)), "r run 35   / filter   c criteria   : find   ? help"),
        (replace(RAN, count=number(54)), "V review 54   n next problem   F run failed 54   : find   ? help"),
        (Situation(verdicts=True), "r run 1   w watch   / filter   : find   ? help"),
        (Situation(row="case", state="not_run"), "r run 1   e edit   T talk   : find   ? help"),
        (replace(ON_CASE, state="failed"), "r run 1   A accept actual 1   V review 1   t triage   : find   ? help"),
        (replace(ON_CASE, state="error"), "r run 1   n next problem   T talk   : find   ? help"),
        (replace(ON_CASE, state="passed"), "n next problem   X repeat 1   e edit   : find   ? help"),
        (replace(ON_CASE, state="running", busy=True, running=True), "x cancel 1   n next problem   / filter"),
        (replace(RAN, busy=True, running=True), "x cancel 1   n next problem   / filter   : find   ? help"),
        (
            replace(ON_CASE, side="panes", state="failed"),
            "esc back to cases   r run 1   enter full text   A accept actual 1   Y copy   : find",
        ),
        (
            replace(ON_CASE, side="panes", state="failed", can_unfold=False),
            "esc back to cases   r run 1   A accept actual",
        ),
        (replace(ON_CASE, side="panes", state="error", missed=True), "esc back to cases   K fix miss   r run 1"),
        (replace(ON_CASE, side="panes", state="error"), "esc back to cases   r run 1   enter full text   Y copy"),
        (
            replace(ON_CASE, side="panes", state="running", busy=True, running=True),
            "esc back to cases   x cancel 1   enter full text",
        ),
        (
            replace(RAN, marked=12, count=number(12)),
            "r run 12   V review 12   esc drop marks   t triage 12   : find   ? help",
        ),
        (
            replace(RAN, marked=12, count=number(12), busy=True, running=True),
            "x cancel 12   V review 12   esc drop marks   t triage 12",
        ),
        (
            replace(RAN, marked=12, count=number(0), busy=True, running=True),
            "esc drop marks   d duplicate   m move cases",
        ),
        (
            replace(RAN, side="page", selected=4, count=number(4), busy=True, running=True, kills=lambda: True),
            "enter show these 4   V review 4   M table   x kill 4",
        ),
        (replace(RAN, side="filter"), "enter keep filter   esc clear filter"),
        (replace(RAN, filtered=True, count=number(7)), "r run 7   V review 7   esc clear filter   : find"),
    ],
)
def test_footer_begins_with_the_most_useful_actions_of_the_situation(at: Situation, footer: str) -> None:
    assert line(at).startswith(footer)


def test_footer_names_the_source_that_is_opened() -> None:
    at = replace(ON_CASE, state="failed", opens=lambda: "agent.py:38")
    assert line(at).startswith("r run 1   A accept actual 1   V review 1   E open agent.py:38")
    assert why_not("edit_outside", Situation()) == "no file here: put the cursor on a case or an agent"


def test_accept_label_has_the_number_of_cases_unless_several_cases_drifted() -> None:
    assert "A accept actual 1 " in line(replace(ON_CASE, state="failed", drifted=True))
    drifted = replace(RAN, drifted=True, count=number(3))
    assert labelled(BY_ID["accept"], drifted).label == "accept actual"


def test_run_is_not_offered_on_a_failed_case_during_a_run() -> None:
    at = replace(ON_CASE, state="failed", busy=True, running=True)
    assert "run" not in [action.id for action in offered(at)]
    assert why_not("run", at) == "a run is active"


def test_footer_offers_only_actions_that_can_work() -> None:
    for at in _situations():
        wrong = [action.id for action in footer_of(at, KEYS) if why_not(action.id, at)]
        assert wrong == [], at
        assert len(footer_of(at, KEYS)) <= place_of(at).in_footer + 2


def test_footer_ends_with_find_and_help_unless_keys_type_text() -> None:
    for at in _situations():
        last = [action.id for action in footer_of(at, KEYS)][-2:]
        assert (last == ["palette", "keys"]) == (at.side != "filter")


def test_places_and_conditions_name_actions_of_the_main_screen() -> None:
    assert {name for place in PLACES for name in place.offers} <= set(MAIN)
    assert set(_CONDITIONS) <= set(MAIN)


def test_case_with_a_verdict_can_be_triaged_and_accepted_until_it_runs_again() -> None:
    failed = replace(ON_CASE, state="failed")
    assert why_not("triage", failed) == why_not("accept", failed) == ""
    assert why_not("triage", replace(ON_CASE, state="running")) == "the case is still running"
    assert why_not("accept", replace(ON_CASE, state="not_run")) == "the case has not run"
    alike = replace(failed, as_expected=lambda: True)
    assert why_not("accept", alike) == "the agent did what is expected: nothing to accept"
    assert why_not("accept", Situation(verdicts=True, count=number(0))) == "nothing failed here"
    assert why_not("rerun", Situation(verdicts=True, count=number(0))) == "nothing failed here"
    nothing_matches = replace(RAN, row="", count=number(0), filtered=True)
    for action in ("review", "mark", "mark_all"):
        assert why_not(action, nothing_matches) == "no case matches the filter"


def test_offered_action_is_labelled_with_its_number_of_cases() -> None:
    labels = {action.id: action.label for action in offered(replace(ON_CASE, state="failed"))}
    assert labels["run"] == "run 1"
    assert BY_ID["run"].label == "run"


def _situations() -> list[Situation]:
    """Return situations with all values of each pair of fields that places and conditions look at."""
    choices: dict[str, tuple[Any, ...]] = {
        name: get_args(kind) for name, kind in get_type_hints(Situation).items() if get_origin(kind) is Literal
    }
    choices["state"] = ("", "not_run", "queued", "running", "passed", "failed", "error", "not_evaluated", "cancelled")
    flags = [{}, {"busy": True, "running": True}, {"marked": 3}, {"filtered": True}, {"verdicts": True}]
    flags += [{"verdicts": True, "problems": True, "case_shown": True}, {"marking": True}, {"count": number(0)}]
    found = product(choices["folder"], choices["row"], choices["side"], choices["state"], flags)
    return [
        Situation(folder, row, state, side, **more)  # type: ignore[arg-type]
        for folder, row, side, state, more in found
        if (state != "") == (row in ("case", "repeat"))
    ]
