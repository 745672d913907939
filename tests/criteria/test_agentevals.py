"""Pairs of calls that LangChain's agentevals judged, beside our verdicts.

agentevals_pairs.json holds the calls, the modes and `agentevals`, the verdict of agentevals 0.0.9. `ours` are the
options of the same meaning, or null if there are none. `why` says why the verdicts may differ. To record again, install
agentevals elsewhere and run `python tests/criteria/test_agentevals.py < old.json > new.json` there.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("agentevals_pairs.json")
MATCH_TYPES = {"strict": "EXACT", "superset": "ANY_ORDER", "unordered": "ANY_ORDER"}


def _turn(calls: list[Any]) -> dict[str, Any]:
    used = [{"name": name, "args": args} for name, args in calls]
    return {"user_content": {"parts": []}, "intermediate_data": {"tool_uses": used}}


def _ours(pair: dict[str, Any]) -> bool:
    from workbench.criteria.base import ScoreRequest
    from workbench.criteria.registry import score
    from workbench.files.criteria import Criterion

    expected, actual = (_turn(pair[side]) for side in ("expected", "actual"))
    criteria = {"tool_trajectory_avg_score": {"match_type": MATCH_TYPES[pair["mode"]], **pair["ours"]}}
    if pair["mode"] == "unordered":
        criteria["limits"] = {"tool_calls": len(pair["expected"])}
    requests = (
        ScoreRequest(Criterion(name, 1.0, 1.0, options), (expected,), (actual,)) for name, options in criteria.items()
    )
    return all(score(request).result.status == "passed" for request in requests)


def test_verdicts_equal_those_of_agentevals_where_the_meaning_is_the_same() -> None:
    pairs = json.loads(FILE.read_text("utf-8"))
    known = [pair for pair in pairs if pair["ours"] is not None]
    wrong = [pair for pair in known if (_ours(pair) == pair["agentevals"]) == ("why" in pair)]
    assert not wrong
    different = Counter("why" in pair for pair in known)
    assert (len(pairs), different[False], different[True]) == (40, 27, 6)


def test_each_difference_is_in_the_documentation(repository: Path) -> None:
    page = " ".join((repository / "docs" / "criteria.md").read_text("utf-8").split())
    reasons = {pair["why"] for pair in json.loads(FILE.read_text("utf-8")) if "why" in pair}
    assert [reason for reason in reasons if reason not in page] == []


def _record(pair: dict[str, Any]) -> dict[str, Any]:
    """Return the pair with the verdict of agentevals. Each call is a message, except if the pair is `parallel`."""
    from agentevals.trajectory.match import create_trajectory_match_evaluator  # type: ignore[import-not-found]

    def messages(calls: list[Any]) -> list[dict[str, Any]]:
        made = [
            {"type": "function", "id": str(number), "function": {"name": name, "arguments": json.dumps(args)}}
            for number, (name, args) in enumerate(calls)
        ]
        groups = [made] if "parallel" in pair else [[call] for call in made]
        steps = [{"role": "assistant", "content": "", "tool_calls": group} for group in groups]
        return [{"role": "user", "content": "Hi"}, *steps, {"role": "assistant", "content": "Done"}]

    judge = create_trajectory_match_evaluator(
        trajectory_match_mode=pair["mode"],
        tool_args_match_mode=pair["args"],
        tool_args_match_overrides=pair.get("overrides"),
    )
    found = judge(outputs=messages(pair["actual"]), reference_outputs=messages(pair["expected"]))
    return {**pair, "agentevals": bool(found["score"])}


if __name__ == "__main__":
    recorded = [json.dumps(_record(pair)) for pair in json.load(sys.stdin)]
    sys.stdout.write("[\n" + ",\n".join(recorded) + "\n]\n")
