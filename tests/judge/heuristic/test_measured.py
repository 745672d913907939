"""The figures that are shown are those that are measured, on items that deserve the name."""

import json
import re
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from workbench.judge import heuristic
from workbench.judge.base import JudgeIdentity, JudgeOptions, Question, Reply
from workbench.judge.heuristic.__main__ import main
from workbench.judge.heuristic.measure import Item, figures, measure
from workbench.judge.heuristic.measured import MEASURED, PROBES, unseen
from workbench.metrics.judged.probe import items as items_of
from workbench.metrics.judged.probe import run_probes


@pytest.fixture(scope="module")
def items() -> list[Item]:
    return measure()


def test_the_shipped_figures_are_what_the_rules_reach(items: list[Item]) -> None:
    assert figures(items) == MEASURED


class Alone:
    """The rules as the judge of a criterion, without a desk."""

    identity = JudgeIdentity("heuristic", "heuristic", heuristic.note())
    options = JudgeOptions("heuristic", samples=1)

    async def ask(self, question: Question, sample: int = 1) -> Reply:
        return Reply((await heuristic.answer(question, self.options, sample)).text)

    def forget(self, question: Question, sample: int = 1) -> None:
        pass


async def test_the_shipped_figures_on_the_probes_are_what_the_rules_reach() -> None:
    results = await run_probes(Alone())
    found = {
        kind: (sum(result.agrees for result in results if result.kind == kind), len(items_of(kind))) for kind in PROBES
    }
    assert found == PROBES
    assert len(results) == sum(of for _, of in PROBES.values())


def test_the_note_tells_the_share_on_items_that_the_rules_were_not_made_with(items: list[Item]) -> None:
    held = [item.right for item in items if item.half == "held_out"]
    held += [True] * sum(right for right, _ in PROBES.values())
    held += [False] * sum(of - right for right, of in PROBES.values())
    assert unseen() == (sum(held), len(held))
    match = re.fullmatch(r"rules, not a language model; right on (\d\.\d\d) of (\d+) items", heuristic.note())
    assert match
    assert float(match[1]) == round(sum(held) / len(held), 2)
    assert int(match[2]) == len(held)
    assert heuristic.note() == heuristic.NOTE


def test_there_are_enough_items_of_each_kind_and_in_both_halves(items: list[Item]) -> None:
    halves = Counter((str(item.kind), str(item.half)) for item in items)
    for kind, least in (("final_response_match", 40), ("claims", 40), ("rubrics", 20), ("user_message", 10)):
        tuned, held = halves[kind, "tuned"], halves[kind, "held_out"]
        assert tuned + held >= least
        assert abs(tuned - held) <= 2


@pytest.mark.parametrize("kind", ["final_response_match", "rubrics", "user_message"])
def test_a_judge_that_always_says_the_same_is_right_on_half_the_items(kind: str, items: list[Item]) -> None:
    for half in ("tuned", "held_out"):
        expected = Counter(item.expected for item in items if (item.kind, item.half) == (kind, half))
        assert max(expected.values()) / sum(expected.values()) <= 0.6, expected


def test_all_labels_that_rules_can_give_are_asked_for(items: list[Item]) -> None:
    for half in ("tuned", "held_out"):
        labels = Counter(item.expected for item in items if (item.kind, item.half) == ("claims", half))
        assert set(labels) == {"supported", "unsupported", "contradictory", "not_applicable"}
        assert min(labels.values()) >= 5


def test_no_item_is_there_twice() -> None:
    for kind in MEASURED:
        found: list[Any] = json.loads(
            (resources.files("workbench.judge.heuristic") / "items" / f"{kind}.json").read_text(encoding="utf-8")
        )
        texts = [json.dumps(item, sort_keys=True) for item in found]
        assert len(set(texts)) == len(texts)


def test_the_page_has_the_figures() -> None:
    page = (Path(__file__).parents[3] / "docs" / "heuristic.md").read_text(encoding="utf-8")
    for kind, ((right, of), (right_held, of_held)) in MEASURED.items():
        tuned, held = f"{right / of:.2f} ({right} of {of})", f"{right_held / of_held:.2f} ({right_held} of {of_held})"
        row = f"| `{kind}` | {tuned} | {held} | {PROBES[kind][0]} of {PROBES[kind][1]} |"
        assert row in page, row
    assert heuristic.note().partition("; ")[2] in page


def test_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--wrong"]) == 0
    printed = capsys.readouterr().out
    assert heuristic.note() in printed
    for kind in MEASURED:
        assert kind in printed
