"""Metrics of google-agents-cli's `eval_config.yaml`, and the criteria that Google's evaluation service rates.

`workbench.files.metrics_config` describes the metrics: functions, prompts for a judge, and those of the service. A
function gets the instance that it gets from `agents-cli eval grade` (its `CustomMetricHandler`): the dataset's case
without `responses` and nulls, `prompt` and `response` as contents, and the conversation in `agent_data`, without the
times of events.

Google's service fills the placeholders of a prompt and reads the score in a way that is not public. Here the judge
replies with JSON, and the score is the mean of its samples.

A metric scores the whole conversation once. Without a threshold it is informational if it has a score.

Details of a function: `function`, `printed`, and for an error `fault` and `traceback`. Details of a prompt: `judge`,
and at the last turn `scores`, `asked`, `of` and `questions`.

For safety_v1 and response_evaluation_score, each turn is one call to the service. The case scores the mean of its turns
(a running sum, as in ADK). If the service returns no score or an error for a turn, the criterion is an error.

For multi_turn_task_success_v1, multi_turn_trajectory_quality_v1 and multi_turn_tool_use_quality_v1, there is one call
per conversation, after its last turn, with what ADK sends: instructions and tools of each agent, and all recorded
events. The service generates rubrics and gives a verdict on each. Its score is shown at the last turn and is the score
of the case. Without a score, or with an error, the criterion is an error.

Details of a turn that the service rated: `explanation`, `error`, `seconds`, `attempts`, `cached`, as returned by the
service's child process, and for conversations `rubrics` [{"rubric_id", "text", "origin", "score", "verdict",
"rationale"}]. Details of the case: `service`, its name for people, and for conversations `rubrics`.
"""

import asyncio
import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from workbench.agents.answering_child import FunctionFailedError
from workbench.criteria.base import (
    Bench,
    NotScorableError,
    Scored,
    ScoreRequest,
    finite,
    mean,
    require_same_length,
    turn_pairs,
    unscored_result,
)
from workbench.criteria.judged.evidence import agents, answer_text, speaker, user_text
from workbench.criteria.judged.voting import (
    MAX_TEXT,
    UnreadableError,
    as_text,
    ask,
    case_result,
    json_objects,
    judged_result,
    line_objects,
    object_schema,
    short,
    values_outside_json,
)
from workbench.events.events import MetricResult
from workbench.files.criteria import Criterion
from workbench.files.invocation import Invocation, content_text, leaves_out, recorded_events
from workbench.files.metrics_config import own_entry
from workbench.judges.base import NotAvailableError, Question, read_judge_options
from workbench.text.counting import amount, counted
from workbench.text.json_values import mapping, objects, parts_of

SERVICE = "Google's evaluation service (Vertex AI)"
_NO_MORE: Mapping[str, Any] = MappingProxyType({})


async def score_turns(request: ScoreRequest, bench: Bench) -> Scored:
    """Return the service's score of each turn, and their mean.

    Raises:
        NotScorableError: The conversations differ in length, or the criterion needs a reference and the case has none.
        NotAvailableError: The project, the credentials or the extra is missing.
    """
    criterion = request.criterion
    instances = _instances(request)
    service = bench.service()
    rated = await asyncio.gather(*(service.rate(criterion.name, instance) for instance in instances))
    turns = [rated_turn(criterion, rating) for rating in rated]
    overall = mean(turn.score for turn in turns)
    scored = [turn for turn in turns if turn.score is not None]
    lowest = min(scored, key=lambda turn: turn.score or 0.0, default=turns[0])
    reason = f"turn {turns.index(lowest) + 1}: {lowest.reason}"
    return case_result(criterion, turns, overall, reason, {"service": SERVICE})


def _instances(request: ScoreRequest) -> list[dict[str, str | None]]:
    if request.expected is None and request.criterion.name != "response_evaluation_score":
        references: list[str | None] = [None] * len(request.actual)
    else:
        references = [
            None if leaves_out(expected, "final_response") else answer_text(expected)
            for expected, _ in turn_pairs(request)
        ]
    return [
        {"prompt": user_text(turn), "response": answer_text(turn), "reference": reference}
        for turn, reference in zip(request.actual, references, strict=True)
    ]


def rated_turn(
    criterion: Criterion, rating: Mapping[str, Any], more: Mapping[str, Any] = _NO_MORE, prefix: str = ""
) -> MetricResult:
    """Return the verdict for a rating of the service, with `more` details and a `prefix` to the explanation."""
    error = rating.get("error")
    value = None if error else finite(rating.get("score"))
    explanation = str(rating.get("explanation") or "")[:MAX_TEXT]
    details = {
        "explanation": explanation,
        "error": error,
        **{key: rating.get(key) for key in ("seconds", "attempts", "cached")},
        **more,
    }
    if error:
        reason = f"the service failed: {error.get('message') or error.get('code') or error.get('kind')}"
    elif value is None:
        reason = "the service returned no score"
    else:
        why = "; ".join(filter(None, (prefix, explanation)))
        reason = f"rated {amount(value)}" + (f": {why}" if why else "")
    return judged_result(criterion, value, reason, details)


async def score_conversation(request: ScoreRequest, bench: Bench) -> Scored:
    """Return the service's score of the conversation.

    Raises:
        NotScorableError: The reference has a different length.
        NotAvailableError: The project, the credentials or the extra is missing.
    """
    criterion = request.criterion
    require_same_length(request)
    rating = await bench.service().rate(criterion.name, conversation_sent(request.actual))
    rubrics = list(_rubrics(rating.get("rubrics")))
    last = rated_turn(criterion, rating, {"rubrics": rubrics}, _rubric_summary(rubrics))
    earlier = unscored_result(criterion, "not_applicable", "rated once, after the last turn")
    turns = [*[earlier] * (len(request.actual) - 1), last]
    return case_result(criterion, turns, last.score, last.reason, {"service": SERVICE, "rubrics": rubrics})


def conversation_sent(turns: Sequence[Invocation]) -> dict[str, Any]:
    """Return a conversation as `AgentData` of Vertex AI, as ADK builds it, with numbers instead of random ids."""
    ids: dict[str, str] = {}
    known: dict[str, dict[str, Any]] = {}
    for turn in turns:
        for name, agent in agents(turn).items():
            known.setdefault(name, agent)
    configs = {
        name: {
            "agent_id": agent.get("name") or name,
            "instruction": agent.get("instructions"),
            "tools": agent.get("tool_declarations"),
        }
        for name, agent in known.items()
    }
    return {"agents": configs, "turns": [_turn(number, turn, ids) for number, turn in enumerate(turns)]}


def _turn(number: int, turn: Invocation, ids: dict[str, str]) -> dict[str, Any]:
    events = [{"author": "user", "content": turn.get("user_content")}]
    events += [
        {
            "author": event.get("author"),
            "content": {**content, "parts": [_with_id(part, ids) for part in content.get("parts") or ()]},
        }
        for event in recorded_events(turn) or ()
        if (content := event.get("content")) is not None
    ]
    events.append({"author": "agent", "content": turn.get("final_response")})
    return {"turn_index": number, "turn_id": f"turn_{number + 1}", "events": events}


def _with_id(part: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    """Return a part in which the random id of a call or a result is replaced by its number. Add new ids to `ids`."""
    changed = dict(part)
    for key in ("function_call", "function_response"):
        if isinstance(inner := part.get(key), dict) and inner.get("id"):
            changed[key] = {**inner, "id": ids.setdefault(inner["id"], f"call_{len(ids) + 1}")}
    return changed


def _rubrics(given: Any) -> Iterator[dict[str, Any]]:
    for number, rubric in enumerate(given if isinstance(given, list) else ()):
        name = str(rubric.get("text") or rubric.get("id") or f"rubric_{number}")[:MAX_TEXT]
        yield {
            "rubric_id": name,
            "text": name,
            "origin": "service",
            "score": 1.0 if rubric.get("met") else 0.0,
            "verdict": "yes" if rubric.get("met") else "no",
            "rationale": str(rubric.get("reasoning") or "")[:MAX_TEXT],
        }


def _rubric_summary(rubrics: Sequence[dict[str, Any]]) -> str:
    """Return how many rubrics of the service are met, and the first rubric that is not, or "" without rubrics."""
    if not rubrics:
        return ""
    missed = [rubric for rubric in rubrics if not rubric["score"]]
    summary = f"{len(rubrics) - len(missed)} of {counted(len(rubrics), 'rubric')} of the service met"
    if not missed:
        return summary
    rationale = f" ({missed[0]['rationale']})" if missed[0]["rationale"] else ""
    return f"{summary}, not: {missed[0]['rubric_id']}{rationale}"


_PLACEHOLDER = re.compile(r"\{([_a-zA-Z][_a-zA-Z0-9]*)\}")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_SCORE = {"type": "number", "description": "The score, on the scale of the instructions."}
_SCHEMA = object_schema({"explanation": {"type": "string"}, "score": _SCORE})
_REPLY = """

Reply with one JSON object and nothing else, whatever form the text above asks for:
{"explanation": "why, in one to three sentences", "score": the score as a number, on the scale described above}
"""
_WHOLE = ("multi_turn_", "tool_use_quality", "hallucination", "grounding")
"""Prefixes of the service's metrics that read events, not only the last texts."""
_COMPARES = "final_response_match"
"""Prefix of the service's metrics that compare the answer with a reference."""


async def score(request: ScoreRequest, bench: Bench) -> Scored:
    """Return the score of the case by a metric of agents-cli.

    Raises:
        NotScorableError: The agent gave no text to grade, a reference is missing, or it has another number of turns.
        NotAvailableError: The judge, the service or functions cannot be used here.
    """
    own = own_entry(request.custom_config)
    kind = own.get("kind")
    if kind == "service":
        scored = await _by_service(request, own, bench)
    else:
        instance = instance_of(request)
        if "response" not in instance:
            raise NotScorableError("the agent gave no text, and agents-cli grades only answers with text")
        by = _by_function if kind == "function" else _by_prompt
        scored = await by(request, own, instance, bench)
    return _informational(scored) if request.criterion.is_informational else scored


def instance_of(request: ScoreRequest) -> dict[str, Any]:
    """Return what agents-cli passes to a function. `response` is missing if the agent gave no text."""
    case = request.dataset_case
    if case is None:
        last = (request.expected or ({},))[-1]
        case = {"prompt": request.actual[0].get("user_content")} if request.actual else {}
        case |= {"reference": {"response": last["final_response"]}} if last.get("final_response") else {}
    instance = copy.deepcopy(case)
    starting = mapping(instance.get("user_scenario")).get("starting_prompt")
    if starting and not instance.get("prompt"):
        instance["prompt"] = {"parts": [{"text": starting}]}
    answer = next((found for turn in reversed(request.actual) if (found := _answer(turn))), None)
    if answer is not None:
        instance["response"] = answer
    instance["agent_data"] = _agent_data(request, mapping(instance.get("agent_data")))
    return instance


def _answer(turn: Invocation) -> dict[str, Any] | None:
    """Return the text of the last content with any text, as a content, or None without any text."""
    contents = [*(event.get("content") for event in recorded_events(turn) or ()), turn.get("final_response")]
    for content in reversed(contents):
        if text := "".join(part["text"] for part in parts_of(content) if part.get("text")):
            return {"parts": [{"text": text}], "role": mapping(content).get("role") or "model"}
    return None


def _agent_data(request: ScoreRequest, given: dict[str, Any]) -> dict[str, Any]:
    known = {name: agent for turn in reversed(request.actual) for name, agent in agents(turn).items()}
    root = next((name for turn in request.actual for name in agents(turn)), "agent")
    configs = {}
    for name, agent in known.items():
        config = {"agent_id": name, "agent_type": "LlmAgent", "instruction": agent.get("instructions")}
        config["tools"] = agent.get("tool_declarations")
        configs[name] = {key: value for key, value in config.items() if value}
    turns = [_given_turn(turn, root) for turn in objects(given.get("turns"))]
    for number, turn in enumerate(request.actual):
        events = list(_events(turn))
        if request.scenario is not None:
            events.insert(0, {"author": "user", "content": turn.get("user_content")})
        if turns and request.scenario is None:
            turns[-1]["events"] += events
        else:
            turns.append({"turn_index": number, "turn_id": f"turn_{number}", "events": events})
    return {**given, **({"agents": configs} if configs else {}), "turns": turns}


def _given_turn(turn: dict[str, Any], root: str) -> dict[str, Any]:
    """Return a turn of the history. Events without content are left out, and "model" gets the root agent's name."""
    events = [event for event in objects(turn.get("events")) if event.get("content")]
    authors = (root if event.get("author") == "model" else event.get("author") for event in events)
    return {**turn, "events": [{**event, "author": author} for event, author in zip(events, authors, strict=True)]}


def _events(turn: Invocation) -> Iterator[dict[str, Any]]:
    answer = turn.get("final_response")
    last = {"author": speaker(turn) or "agent", "content": answer}
    for event in (*(recorded_events(turn) or ()), *([last] if parts_of(answer) else ())):
        if event.get("content"):
            parts = [
                {key: value for key, value in part.items() if key != "thought_signature" and value is not None}
                for part in parts_of(event["content"])
            ]
            yield {"author": event.get("author"), "content": {**event["content"], "parts": parts}}


async def _by_function(request: ScoreRequest, own: dict[str, Any], instance: dict[str, Any], bench: Bench) -> Scored:
    criterion = request.criterion
    shown = own["file"] or f"custom_function of {criterion.name}"
    payload = {"instance": instance, "source": own["source"], "file": own["file"]}
    details: dict[str, Any] = {"function": shown}
    try:
        result = await bench.functions().call("evaluate", shown, payload)
    except FunctionFailedError as error:
        reason = f"{error.message} ({error.hint})" if error.hint else error.message
        details |= {"fault": error.kind, "traceback": error.traceback[-MAX_TEXT:], "printed": error.printed}
        return Scored(unscored_result(criterion, "error", short(reason), details))
    details["printed"] = result["printed"]
    return Scored(judged_result(criterion, result["score"], result["explanation"], details))


async def _by_prompt(request: ScoreRequest, own: dict[str, Any], instance: dict[str, Any], bench: Bench) -> Scored:
    criterion = request.criterion
    template = own["prompt_template"]
    values = {name: _text(name, instance) for name in _PLACEHOLDER.findall(template)}
    if lacking := [name for name, text in values.items() if text is None]:
        reason = f"the prompt needs `{lacking[0]}`, which the case lacks"
        return Scored(unscored_result(criterion, "not_applicable", reason))
    judge = bench.judge(read_judge_options(own["judge_model_options"]))
    filled = _PLACEHOLDER.sub(lambda match: values[match[1]] or "", template)
    instruction = f"{own['system_instruction']}\n\n" if own["system_instruction"] else ""
    question = Question("score", f"{instruction}{filled}{_REPLY}", _SCHEMA, {"template": template, "values": values})
    sampled = await ask(judge, question, _read_score, lambda answers, left: left, all_votes=True)
    scores = [answer["score"] for answer in sampled.answers]
    details = {"scores": scores, "asked": len(sampled.samples), "of": sampled.of}
    details["questions"] = [sampled.record(judge, lambda answer: answer)]
    unread = len(scores) < len(sampled.samples)
    explanations = (answer["explanation"] for answer in sampled.answers if answer["explanation"])
    reason = sampled.unread or next(explanations, "")
    last = judged_result(criterion, mean(scores), reason, details, unjudged=unread)
    earlier = unscored_result(criterion, "not_applicable", "judged once, after the last turn")
    turns = [*[earlier] * (len(request.actual) - 1), last]
    return case_result(criterion, turns, last.score, last.reason, {"judge": judge.identity.as_json()})


def _text(name: str, instance: Mapping[str, Any]) -> str | None:
    """Return the value of a placeholder as text, or None if the case has none."""
    value = instance.get(name)
    if name == "prompt" and value is None:
        events = [event for turn in instance["agent_data"]["turns"] for event in turn["events"]]
        value = next((event["content"] for event in reversed(events) if event.get("author") == "user"), None)
    if name == "reference":
        value = mapping(value).get("response")
    if parts_of(value):
        return content_text(value)
    return None if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read_score(text: str) -> dict[str, Any]:
    """Return the score and explanation in a reply.

    Raises:
        UnreadableError: There is no score, or there are several different ones.
    """
    found = [item for item in json_objects(text) if "score" in item]
    found = found or [item for item in line_objects(text, ("score", "explanation")) if "score" in item]
    scores = {_number(item["score"]) for item in found}
    # One of them may only be quoted.
    outside = (_number(value.strip(" *_`\"'")) for value in values_outside_json(text, ("score",)))
    scores |= {value for value in outside if value is not None}
    if len(scores) != 1 or None in scores:
        raise UnreadableError("the reply has several different scores" if len(scores) > 1 else "the reply has no score")
    return {"score": scores.pop(), "explanation": as_text(found[-1].get("explanation"))[:MAX_TEXT]}


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    match = _NUMBER.match(str(value).strip())
    return finite(float(match[0])) if match else None


async def _by_service(request: ScoreRequest, own: dict[str, Any], bench: Bench) -> Scored:
    """Score with Google's service. If that is impossible, the reason or the error names the nearest criterion here."""
    metric, criterion = own["metric"], request.criterion
    nearest = f"The nearest criterion here is {own['nearest']}" if own["nearest"] else ""
    if not metric:
        reason = f"{criterion.name} runs only in Google's service, through `agents-cli eval grade`. {nearest}".strip()
        return Scored(unscored_result(criterion, "not_evaluated", reason))
    if metric.startswith(_COMPARES) and all(instance["reference"] is None for instance in _instances(request)):
        reason = "the dataset's case has no `reference` to compare with"
        return Scored(unscored_result(criterion, "not_applicable", reason))
    by = score_conversation if metric.startswith(_WHOLE) else score_turns
    try:
        scored = await by(replace(request, criterion=replace(criterion, name=metric)), bench)
    except NotAvailableError as error:
        hint = ". ".join(filter(None, (error.hint, nearest)))
        raise NotAvailableError(f"{criterion.name} is judged by Google's service only; {error}", hint) from None
    turns = tuple(replace(turn, name=criterion.name) for turn in scored.turns)
    return Scored(replace(scored.result, name=criterion.name), turns)


def _informational(scored: Scored) -> Scored:
    """Return the results as informational. Results that did not pass or fail keep their status."""

    def undecided(result: MetricResult) -> MetricResult:
        is_decided = result.status in ("passed", "failed")
        return replace(result, status="informational" if is_decided else result.status, threshold=None)

    return Scored(undecided(scored.result), tuple(map(undecided, scored.turns)))
