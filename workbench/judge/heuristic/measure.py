"""The rules against the items that the package ships, each half by itself.

Items come in pairs or, for claims, as contexts with some sentences; every second one is held out: no rule was made or
changed with a look at how it fares on those. An answer of `unclear`, and a list of sentences that differs in one, is
not right.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from workbench.judge.base import Question, QuestionKind
from workbench.judge.heuristic.judge import reply

Half = Literal["tuned", "held_out"]


@dataclass(frozen=True, slots=True)
class Item:
    """One question of a shipped item with what the answer should be, and what was answered."""

    kind: QuestionKind
    half: Half
    shown: str
    expected: Any
    given: Any

    @property
    def right(self) -> bool:
        return bool(self.expected == self.given)


def measure() -> list[Item]:
    """All items, answered."""
    return [item for kind, reader in _KINDS.items() for item in reader(kind, _read(kind))]


def figures(items: list[Item]) -> dict[str, tuple[tuple[int, int], tuple[int, int]]]:
    """In the shape of `measured.MEASURED`."""
    found: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {}
    for kind in _KINDS:
        halves = [
            [item.right for item in items if (item.kind, item.half) == (kind, half)] for half in ("tuned", "held_out")
        ]
        found[kind] = ((sum(halves[0]), len(halves[0])), (sum(halves[1]), len(halves[1])))
    return found


def data_of_claims(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item's context in the shape of the question's data."""
    context = [
        {"kind": "instructions", "name": "agent", "text": item["instructions"], "event": None, "call_id": None},
        {"kind": "user", "name": "user", "text": item["user"], "event": None, "call_id": None},
    ]
    for number, call in enumerate(item["calls"]):
        for kind, value in (("call", call["args"]), ("result", call["response"])):
            text = json.dumps(value, ensure_ascii=False, indent=1)
            context.append({"kind": kind, "name": call["name"], "text": text, "event": None, "call_id": str(number)})
    texts = [sentence["text"] for sentence in item["sentences"]]
    return {"text": " ".join(texts), "sentences": texts, "context": context}


def data_of_rubrics(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item's turn in the shape of the question's data."""
    steps = [{"call": {"name": c["name"], "args": c["args"]}, "response": c["response"]} for c in item["calls"]]
    return {
        "rubrics": [{"id": "rubric", "text": item["rubric"]}],
        "user": item["user"],
        "answer": item["answer"],
        "instructions": "",
        "tools": {},
        "steps": steps,
        "grounding": [],
        "conversation": None,
    }


def data_of_user_message(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item's conversation in the shape of the question's data."""
    history = [{"role": role, "text": text} for role, text in item["history"]]
    plan, message = item["plan"], item["message"]
    start = history[0]["text"]
    return {
        "plan": plan,
        "starting_prompt": start,
        "history": history,
        "message": message,
        "stop_signal": "</finished>",
        "persona": None,
    }


def _matches(kind: QuestionKind, items: list[dict[str, Any]]) -> Iterator[Item]:
    for number, item in enumerate(items):
        data = {"user": item["question"], "response": item["response"], "reference": item["reference"]}
        shown = f"{item['reference']!r} / {item['response']!r}"
        yield Item(kind, _half(number // 2), shown, item["verdict"], _ask(kind, data)["verdict"])


def _claims(kind: QuestionKind, items: list[dict[str, Any]]) -> Iterator[Item]:
    for number, item in enumerate(items):
        replies = _ask(kind, data_of_claims(item))["claims"]
        for sentence, claim in zip(item["sentences"], replies, strict=True):
            yield Item(kind, _half(number), sentence["text"], sentence["label"], claim["label"])


def _rubrics(kind: QuestionKind, items: list[dict[str, Any]]) -> Iterator[Item]:
    for number, item in enumerate(items):
        given = _ask(kind, data_of_rubrics(item))["verdicts"][0]["verdict"]
        yield Item(kind, _half(number // 2), f"{item['rubric']} / {item['answer']}", item["verdict"], given)


def _sentences(kind: QuestionKind, items: list[dict[str, Any]]) -> Iterator[Item]:
    for number, item in enumerate(items):
        given = _ask(kind, {"text": item["text"]})["sentences"]
        yield Item(kind, _half(number // 2), item["text"], item["sentences"], given)


def _user_messages(kind: QuestionKind, items: list[dict[str, Any]]) -> Iterator[Item]:
    for number, item in enumerate(items):
        given = _ask(kind, data_of_user_message(item))["verdict"]
        yield Item(kind, _half(number // 2), f"{item['plan']} / {item['message']}", item["verdict"], given)


def _half(number: int) -> Half:
    return "held_out" if number % 2 else "tuned"


def _ask(kind: QuestionKind, data: Mapping[str, Any]) -> Any:
    return json.loads(reply(Question(kind, "", None, data)))


def _read(kind: str) -> list[dict[str, Any]]:
    file = resources.files("workbench.judge.heuristic") / "items" / f"{kind}.json"
    items: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return items


_KINDS: dict[QuestionKind, Callable[[QuestionKind, list[dict[str, Any]]], Iterator[Item]]] = {
    "final_response_match": _matches,
    "claims": _claims,
    "rubrics": _rubrics,
    "sentences": _sentences,
    "user_message": _user_messages,
}
