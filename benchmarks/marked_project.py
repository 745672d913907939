"""A project whose agents put a mark of their process into every event, so that mixed transcripts are seen.

One agent is plain Python, the other one is a google-adk agent with a scripted model. Each attempt at a case is a
process of its own.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.events.events import (
    AgentActed,
    AttemptLost,
    CaseFinished,
    CasePlaced,
    CaseRef,
    CaseStarted,
    MetricScored,
    OutputCaptured,
    RunStarted,
    SpansRecorded,
    TurnFinished,
)
from workbench.store.details import read_records
from workbench.store.history.stored_events import read_run

DESK = """
import asyncio, os, uuid

MARKS = {}

def mark():
    return MARKS.setdefault(os.getpid(), "mark" + uuid.uuid4().hex)

async def root_agent(message, session):
    print(mark())
    yield {"tool_call": {"name": "find", "args": {"by": mark()}}}
    await asyncio.sleep(PAUSE / 2)
    yield {"tool_response": {"name": "find", "response": {"by": mark()}}}
    await asyncio.sleep(PAUSE / 2)
    yield ("the parcel has left " if message.startswith("good") else "no idea ") + mark()
"""
CLERK = """
import asyncio, os, uuid
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types

MARKS = {}

def mark():
    return MARKS.setdefault(os.getpid(), "mark" + uuid.uuid4().hex)

def said():
    return mark().replace("mark", "said")

async def find(by: str) -> dict:
    '''Looks a parcel up.'''
    print(mark())
    await asyncio.sleep(PAUSE / 2)
    return {"by": mark()}

class Scripted(BaseLlm):
    model: str = "scripted"

    async def generate_content_async(self, llm_request, stream=False):
        await asyncio.sleep(PAUSE / 2)
        last = llm_request.contents[-1].parts[-1]
        if last.function_response is None:
            part = types.Part(function_call=types.FunctionCall(name="find", args={"by": said()}))
        else:
            asked = [c.parts[0].text for c in llm_request.contents if c.role == "user" and c.parts[0].text]
            good = asked[-1].startswith("good")
            part = types.Part(text=("the parcel has left " if good else "no idea ") + said())
        yield LlmResponse(content=types.Content(role="model", parts=[part]))

root_agent = LlmAgent(name="clerk", model=Scripted(), instruction="You find parcels.", tools=[find])
"""
CRITERIA = {"response_match_score": 0.5}
_MARK = re.compile(r"mark[0-9a-f]{32}")
_ANSWER = re.compile(r"said[0-9a-f]{32}")
_ANY_MARK = re.compile(r"(?:mark|said)[0-9a-f]{32}")
"""Marks of answers of models (`said…`) too: an attempt after a lost one gets the answers that were paid for already."""
TURNS = 3


@dataclass(frozen=True)
class Outcome:
    """The end of a case. `told` is its verdict, scores and transcript, without marks.

    `lost` counts attempts before, `waited` those of them that had no machine yet.
    `kind` and `why` are those of its error, or "". `answers` are the marks of the attempts that asked the model.
    """

    status: str
    attempt: int
    lost: int
    waited: int
    kind: str
    why: str
    marks: frozenset[str]
    answers: frozenset[str]
    told: str


def write_project(root: Path, desk: int, clerk: int, pause: float) -> None:
    """Write agents with so many cases of three turns of `pause` seconds. An agent without cases is left out."""
    (root / ".workbench").mkdir(parents=True)
    for name, source, cases in (("desk", DESK, desk), ("clerk", CLERK, clerk)):
        if not cases:
            continue
        folder = root / name
        folder.mkdir()
        (folder / "agent.py").write_text(source.replace("PAUSE", repr(pause)), encoding="utf-8")
        (folder / "__init__.py").write_text("", encoding="utf-8")
        (folder / "test_config.json").write_text(json.dumps({"criteria": CRITERIA}), encoding="utf-8")
        evalset = {"eval_set_id": "parcels", "eval_cases": [_case(number) for number in range(cases)]}
        (folder / "parcels.evalset.json").write_text(json.dumps(evalset, indent=1), encoding="utf-8")


def _case(number: int) -> dict[str, object]:
    name = f"{'bad' if number % 3 == 2 else 'good'}_{number:03}"
    turn = {
        "user_content": {"role": "user", "parts": [{"text": name}]},
        "final_response": {"role": "model", "parts": [{"text": "the parcel has left"}]},
    }
    return {"eval_id": name, "conversation": [turn] * TURNS}


def outcomes(events: Iterator[object]) -> dict[str, list[Outcome]]:
    """Return all ends of each planned case in a stored run."""
    found: dict[str, list[Outcome]] = {}
    open_cases: dict[str, list[dict[str, Any]]] = {}
    attempts: dict[str, int] = {}
    lost: Counter[str] = Counter()
    waited: Counter[str] = Counter()
    void: set[str] = set()
    for event in events:
        if isinstance(event, RunStarted):
            for planned in event.cases:
                found.setdefault(_name(planned.case), [])
        elif isinstance(event, CaseStarted):
            name = _name(event.case)
            if name not in void:
                open_cases[name] = []
            void.discard(name)
            attempts[name] = event.attempt
            if event.attempt == 1:
                lost[name] = waited[name] = 0
        elif isinstance(event, AttemptLost):
            lost[_name(event.case)] += 1
            waited[_name(event.case)] += not event.lost.machine
            open_cases[_name(event.case)] = []
            void.add(_name(event.case))  # What still comes of it counts for the next one, and is seen by its mark.
        elif isinstance(event, CaseFinished):
            name = _name(event.case)
            end = _outcome(event, open_cases.pop(name, []), attempts.get(name, 1), lost[name], waited[name])
            found.setdefault(name, []).append(end)
        elif isinstance(event, AgentActed | TurnFinished | OutputCaptured | MetricScored | SpansRecorded):
            open_cases.setdefault(_name(event.case), []).append(_said(event))
    return found


def under_way(events: Iterator[object], machine: str) -> int:
    """Return how many cases are in the middle, after their first turn, on a machine whose name begins like this."""
    turns: dict[CaseRef, int] = {}
    for event in events:
        if isinstance(event, CasePlaced) and event.machine.startswith(machine):
            turns[event.case] = 0
        elif isinstance(event, TurnFinished) and event.case in turns:
            turns[event.case] += 1
        elif isinstance(event, CaseFinished | AttemptLost):
            turns.pop(event.case, None)
    return sum(0 < done < TURNS for done in turns.values())


def _name(case: CaseRef) -> str:
    return f"{case.agent}/{case.eval_id}"


def _said(event: AgentActed | TurnFinished | OutputCaptured | MetricScored | SpansRecorded) -> dict[str, Any]:
    """Return an event with what a transcript shows: calls, answers and scores in `told`, everything else in `all`."""
    told: object = None
    if isinstance(event, TurnFinished):
        told = [event.turn, [_parts(content) for content in _contents(event.actual)]]
    elif isinstance(event, MetricScored) and event.result.name in CRITERIA:
        told = [event.result.name, event.result.status, event.result.score]
    return {"all": repr(event), "told": told}


def _contents(actual: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield actual.get("user_content") or {}
    for event in (actual.get("intermediate_data") or {}).get("invocation_events") or []:
        yield event.get("content") or {}
    yield actual.get("final_response") or {}


def _parts(content: Mapping[str, Any]) -> object:
    """Return the parts of a content without the ids that each attempt chooses anew."""
    text = json.dumps(content.get("parts"), sort_keys=True)
    return re.sub(r'"id": "[^"]*", |, "id": "[^"]*"|"id": "[^"]*"', "", _ANY_MARK.sub("MARK", text))


def _outcome(end: CaseFinished, said: list[dict[str, Any]], attempt: int, lost: int, waited: int) -> Outcome:
    text = "\n".join(one["all"] for one in said)
    told = json.dumps([end.status, sorted(str(one["told"]) for one in said if one["told"] is not None)])
    kind, why = ("", "") if end.error is None else (end.error.kind, end.error.message)
    marks, answers = frozenset(_MARK.findall(text)), frozenset(_ANSWER.findall(text))
    return Outcome(str(end.status), attempt, lost, waited, kind, why, marks, answers, told)


def shown_marks(path: Path) -> dict[str, frozenset[str]]:
    """Return the marks of attempts in what reports and the screen show of each case of a stored run."""
    events = read_run(path)
    refs = {planned.case for event in events if isinstance(event, RunStarted) for planned in event.cases}
    shown = read_records(path, refs)
    return {_name(ref): frozenset(_MARK.findall(repr(record))) for ref, record in shown.items()}
