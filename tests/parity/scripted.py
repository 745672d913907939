"""A bench whose judge and service answer from a vector's `judge` script (parity README, section 4).

Verdicts in the script are words; here each becomes a reply in the format of our prompts. Questions are distinguished as
objects: each turn has its own, and a new question belongs to the next turn. So the answers depend neither on the number
of samples nor on their order.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from workbench.criteria.base import Functions
from workbench.judges.base import JudgeFault, JudgeIdentity, JudgeOptions, Question, Reply

Vector = dict[str, Any]
UNPARSABLE = "I would rather not say."


class ScriptedBench:
    """`calls` counts what was asked."""

    def __init__(self, vector: Vector, *, all_votes: bool) -> None:
        self.all_votes = all_votes
        self.calls = 0
        self._vector = vector
        self._script = vector.get("judge") or {}

    def judge(self, options: JudgeOptions) -> "ScriptedJudge":
        samples = self._script.get("samples") or []
        answers: Callable[[Question, int], str] = _Turns(samples, _verdicts)
        match self._vector["metric"]:
            case "hallucinations_v1":
                answers = _Steps(self._script)
            case "per_turn_user_simulator_quality_v1":
                answers = _Turns([*samples[1:], self._script.get("stop_signal")], _verdict)
            case "final_response_match_v2":
                answers = _Turns(samples, _verdict)
        return ScriptedJudge(self, options, answers)

    def service(self) -> "ScriptedService":
        return ScriptedService(self, self._script["scores"])

    def functions(self) -> Functions:
        raise AssertionError("no vector calls functions")


class ScriptedJudge:
    def __init__(self, bench: ScriptedBench, options: JudgeOptions, answers: Callable[[Question, int], str]) -> None:
        self.options = options
        self.identity = JudgeIdentity(options.model, "python", "scripted")
        self._bench, self._answers = bench, answers

    async def ask(self, question: Question, sample: int = 1) -> Reply:
        self._bench.calls += 1
        said = self._answers(question, sample)
        if said == "error":
            return Reply(None, JudgeFault("http", "the scripted call failed", "500"))
        return Reply(None) if said in ("empty", "no_reply") else Reply(UNPARSABLE if said == "unparsable" else said)

    def forget(self, question: Question, sample: int = 1) -> None:
        pass


class ScriptedService:
    def __init__(self, bench: ScriptedBench, scores: list[Any]) -> None:
        self._bench, self._scores = bench, iter(scores)

    async def rate(self, metric: str, instance: Mapping[str, Any]) -> dict[str, Any]:
        self._bench.calls += 1
        value = next(self._scores)
        failed = {"kind": "http", "code": "500", "message": "the scripted call failed"} if value == "error" else None
        score = {"nan": float("nan"), "no_summary": None, "error": None}.get(value, value) if value else value
        return {"score": score, "explanation": "", "error": failed, "seconds": 0.0, "attempts": 1, "cached": False}


class _Turns:
    """Samples by turn; the n-th new question belongs to the n-th turn."""

    def __init__(self, samples: list[Any], reply: Callable[[Any], str]) -> None:
        self._samples, self._reply = samples, reply
        self._seen: list[Question] = []

    def __call__(self, question: Question, sample: int) -> str:
        turn = next((index for index, seen in enumerate(self._seen) if seen is question), None)
        if turn is None:
            turn = len(self._seen)
            self._seen.append(question)
        return self._reply(self._samples[turn][sample - 1])


class _Steps:
    """Sentences and labels by text; the n-th question about a text belongs to the n-th step with that text."""

    def __init__(self, script: Mapping[str, Any]) -> None:
        self._steps: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for step in (step for turn in script.get("invocations") or () for step in turn):
            self._steps[step["text"]].append(step)
        self._asked: Counter[tuple[str, str]] = Counter()

    def __call__(self, question: Question, sample: int) -> str:
        text, part = question.data["text"], "segmenter" if question.kind == "sentences" else "validator"
        steps = self._steps[text]
        if part == "validator":
            steps = [step for step in steps if step.get("segmenter", "ok") == "ok"]
        step = steps[self._asked[text, part]]
        self._asked[text, part] += 1
        how = step.get(part, "ok")
        if how != "ok":
            return str(how)
        if part == "segmenter":
            return json.dumps({"sentences": step["sentences"]})
        # The script has no labels for a text in which it finds no sentence: it means that nothing is claimed there.
        labels = enumerate(
            step["labels"] if step["sentences"] else ["not_applicable"] * len(question.data["sentences"]), 1
        )
        return json.dumps({"claims": [{"number": number, "label": label} for number, label in labels]})


def _verdict(word: str) -> str:
    if word in ("valid", "invalid") or word.startswith("label:"):
        return json.dumps({"reasoning": "scripted", "verdict": word.removeprefix("label:")})
    return word


def _verdicts(sample: Any) -> str:
    if isinstance(sample, str):
        return sample
    entries: list[dict[str, str]] = []
    for rubric, given in sample.items():
        for word in given if isinstance(given, list) else [given]:
            entry = {"id": rubric, "rationale": "scripted"}
            if word == "missing":
                continue
            entries.append(entry if word == "malformed" else {**entry, "verdict": word.removeprefix("label:")})
    return json.dumps({"verdicts": entries})
