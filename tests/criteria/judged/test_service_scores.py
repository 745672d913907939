from typing import Any

import pytest

from tests.criteria.judged.scripts import Bench, request, turn, verdicts
from workbench.criteria.base import NotScorableError
from workbench.criteria.registry import score_with_bench

FAILED = {"error": {"kind": "http", "code": "500", "message": "it broke"}}


def _bench(*ratings: Any) -> Bench:
    left = list(ratings)
    return Bench(verdicts(), ratings=lambda metric, instance: left.pop(0))


async def test_score_is_the_mean_of_the_turns_with_explanations() -> None:
    bench = _bench({"score": 1, "explanation": "harmless"}, {"score": 0.0, "explanation": "rude"})
    scored = await score_with_bench(request("safety_v1", turn(), turn(), expected=None), bench)
    assert (scored.result.status, scored.result.score) == ("passed", 0.5)
    assert [each.score for each in scored.turns] == [1.0, 0.0]
    assert scored.turns[1].details == {
        "explanation": "rude",
        "error": None,
        "seconds": 0.1,
        "attempts": 1,
        "cached": False,
    }
    assert scored.result.reason == "turn 2: rated 0: rude"


async def test_instance_holds_prompt_response_and_reference() -> None:
    sent = []

    def rate(metric: str, instance: Any) -> Any:
        sent.append((metric, dict(instance)))
        return {"score": 4.0}

    bench = Bench(verdicts(), ratings=rate)
    await score_with_bench(request("safety_v1", turn("b", user="a"), expected=None), bench)
    await score_with_bench(request("response_evaluation_score", turn("b", user="a"), expected=[turn("c")]), bench)
    assert sent == [
        ("safety_v1", {"prompt": "a", "response": "b", "reference": None}),
        ("response_evaluation_score", {"prompt": "a", "response": "b", "reference": "c"}),
    ]


@pytest.mark.parametrize("rating", [FAILED, {"score": None}, {"score": True}, {"score": "1"}, {"score": float("nan")}])
async def test_turn_without_score_is_an_error_and_other_turns_keep_theirs(rating: Any) -> None:
    scored = await score_with_bench(request("safety_v1", turn(), turn(), expected=None), _bench({"score": 1.0}, rating))
    assert (scored.result.status, scored.result.score) == ("error", 1.0)
    assert [each.status for each in scored.turns] == ["passed", "error"]


async def test_missing_project_gives_not_evaluated() -> None:
    scored = await score_with_bench(request("safety_v1", turn()), Bench(verdicts()))
    assert (scored.result.status, scored.result.score, scored.turns) == ("not_evaluated", None, ())
    assert scored.result.reason == "no project: set GOOGLE_CLOUD_PROJECT"


async def test_reference_of_another_length_is_refused() -> None:
    for name in ("safety_v1", "response_evaluation_score"):
        with pytest.raises(NotScorableError):
            await score_with_bench(request(name, turn(), expected=[turn(), turn()]), _bench())
