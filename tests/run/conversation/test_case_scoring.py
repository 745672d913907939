"""Scoring of one transcript: published verdicts, usage and cancelling."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.run.project import turn
from workbench.criteria.secrets import Secrets
from workbench.events.events import CaseError, CaseFinished, CaseRef, Event, MetricScored, Usage
from workbench.files.criteria import CriteriaConfig, Criterion
from workbench.files.evalset import EvalCase
from workbench.files.run_options import RunOptions
from workbench.run.conversation.transcript import CaseScoring, RunContext, Transcript, Verdicts
from workbench.run.processes.children import Children
from workbench.run.scoring.verdict import with_judges

REF = CaseRef("desk", "desk/all.evalset.json", "all", "one")
CANCELLED = CaseError("cancelled", "cancelled")
ROUGE = Criterion("response_match_score", 0.5, 0.5, {})
SECRET = "sesame-opens-all-doors"


@pytest_asyncio.fixture
async def children(monkeypatch: pytest.MonkeyPatch, warm_scorers: None) -> AsyncIterator[Children]:
    """A scorer with scripted answers (`tests/run/scripted_scorer.py`)."""
    monkeypatch.setattr("workbench.run.scoring.client.MODULE", "tests.run.scripted_scorer")
    for module in ("scoring.client", "conversation.transcript"):
        monkeypatch.setattr(f"workbench.run.{module}.needs_bench", lambda name, custom=False: name.startswith("ask"))
    async with Children() as warm:
        warm.scorer.begin_run(
            in_flight=1, max_calls=None, use_cache=True, cache_dir=None, timeout=300.0, on_wait=lambda *wait: None
        )
        yield warm


def ask(do: str, name: str = "ask") -> Criterion:
    return Criterion(name, 0.5, 0.5, {"do": do})


class Scoring:
    def __init__(self, children: Children, *criteria: Criterion) -> None:
        self.shown: list[MetricScored] = []
        fields: dict[str, Any] = {"interpreter": "", "root": "", "folder": "", "cwd": ""}
        environment = {"key": "one", "values": {"WHO": "one", "DESK_KEY": SECRET}, **fields}
        secrets = Secrets([environment["values"]])
        context = RunContext(
            RunOptions(), children, self._take, lambda: 0.0, secrets, lambda agent: environment, _without_inputs
        )
        self.case = CaseScoring(REF, CriteriaConfig(None, criteria), context)

    def _take(self, event: Event) -> None:
        assert isinstance(event, MetricScored)
        self.shown.append(event)

    async def run(self, answer: str = "ok") -> Verdicts:
        case = EvalCase("one", (turn("hello", "ok"),), None, None, (), None, None)
        return await self.case.run(case, Transcript([turn("hello", answer)]))

    @property
    def names(self) -> list[str]:
        return [event.result.name for event in self.shown if event.result.status != "informational"]


async def _without_inputs(finished: CaseFinished, transcript: Transcript, is_simulated: bool) -> CaseFinished:
    return finished


async def test_usage_of_judges_is_summed(children: Children) -> None:
    verdicts = await Scoring(children, ask("count"), ROUGE, ask("count", "ask_2")).run()
    assert (verdicts.status, verdicts.error) == ("passed", None)
    assert verdicts.usage == Usage(judge_calls=6, judge_calls_cached=4, judge_input_tokens=80, judge_output_tokens=8)
    agent = Usage(model_calls=2, input_tokens=20, output_tokens=10, judge_calls=1)
    assert with_judges(agent, verdicts.usage) == Usage(2, 20, 10, 7, 4, 80, 8)


async def test_cancelled_scoring_keeps_computed_verdicts(children: Children) -> None:
    scoring = Scoring(children, ask("hold"), ROUGE)
    scoring.case.cancel(CANCELLED)
    verdicts = await scoring.run()
    assert (verdicts.status, verdicts.error) == ("cancelled", CANCELLED)
    assert scoring.names == [ROUGE.name]


async def test_cancelling_has_no_effect_without_judges(children: Children) -> None:
    scoring = Scoring(children, ROUGE)
    scoring.case.cancel(CANCELLED)
    verdicts = await scoring.run()
    assert (verdicts.status, verdicts.error) == ("passed", None)


async def test_secrets_reach_judges_but_not_explanations(children: Children) -> None:
    """Explanations of computed scores quote words of the text. None of them may be part of a secret."""
    scoring = Scoring(children, ROUGE, ask(""))
    verdicts = await scoring.run(f"ok {SECRET}")
    assert verdicts.scored[0].result.score == pytest.approx(2 / 6), "ok, and the four words of the secret"
    assert scoring.names == [ROUGE.name, "ask"]
    assert "sesame" not in str(scoring.shown[0])


async def test_secrets_in_states_and_inner_calls_are_not_explained_in_part(children: Children) -> None:
    """Long values are cut, so a piece of a secret at the cut could not be recognised later."""
    options = {"include_agent_tools": True}
    state = Criterion("session_state_match", 1.0, 1.0, {})
    scoring = Scoring(
        children, state, Criterion("tool_trajectory_avg_score", 1.0, {**options, "threshold": 1}, options)
    )
    noted, called = "x" * 50 + SECRET + "y" * 50, "x" * 230 + SECRET + "y" * 3000
    inner = ({"call": "1", "tool": "clerk", "agent": "clerk", "name": "find", "args": {"text": called}},)
    acted = {**turn("hello", "ok"), "intermediate_data": {"invocation_events": []}}
    case = EvalCase("one", (turn("hello", "ok"),), None, None, (), {"note": "z"}, None)
    transcript = Transcript([acted], state={"note": noted}, inner_calls=[inner])
    verdicts = await scoring.case.run(case, transcript)
    assert verdicts.status == "failed"
    assert [event.result.status for event in scoring.shown[:2]] == ["failed", "failed"]
    assert "sesame" not in str(scoring.shown)


async def test_reason_says_if_only_a_replaced_secret_differs(children: Children) -> None:
    """After `A`, the expected call holds the placeholder that the stored run shows."""
    scoring = Scoring(children, Criterion("tool_trajectory_avg_score", 1.0, 1.0, {}))
    expected, actual = (
        turn("hello", "ok", [{"name": "find", "args": {"key": key}}]) for key in ("[secret DESK_KEY]", SECRET)
    )
    case = EvalCase("one", (expected,), None, None, (), None, None)
    await scoring.case.run(case, Transcript([actual]))
    result = scoring.shown[0].result
    assert (result.status, result.reason) == ("failed", "a secret, which is replaced here, decides")
