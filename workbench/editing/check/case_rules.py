"""Problems of one case: references, turns, tool calls and the simulated user."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.agents.declared_tools import DeclaredTool, DeclaredTools
from workbench.criteria.json_difference import shown
from workbench.criteria.registry import descriptions
from workbench.editing.check.criteria_rules import rubric_problems
from workbench.editing.check.problem import Problem, Rule
from workbench.files.criteria import CriteriaConfig
from workbench.files.evalset import EvalCase, EvalsetDocument
from workbench.files.faults import Breach, Location, nearest_hint
from workbench.files.invocation import Invocation, ToolCall, content_text, leaves_out, tool_calls
from workbench.judges.base import JudgeEnvironment
from workbench.run.plan.blocking import Obstacle, Rubrics, obstacle, unused_expectations
from workbench.text.counting import counted

Found = Iterator[tuple[Rule, Breach]]
_TRANSFER = "transfer_to_agent"
_KEEPS_UNKNOWN_KEYS = (2, 3)


def case_problems(case: EvalCase, config: CriteriaConfig, tools: DeclaredTools) -> Found:
    """Yield the problems of a case under these criteria. Locations are inside the case."""
    names = {criterion.name for criterion in config.criteria}
    yield from (("unused", breach) for breach in unused_expectations(case, config))
    yield from _references(case.turns or (), names)
    yield from turn_problems(case)
    yield from rubric_problems(case, names)
    if any(name in descriptions() and descriptions()[name].compares_calls for name in names):
        for number, turn in enumerate(case.turns or ()):
            yield from _calls(number, turn, tools)
    app = (case.session_input or {}).get("app_name")
    if isinstance(app, str) and splits_a_path(app):
        message = f"ADK cannot save results of the app `{app}`: ADK reads the name as a path"
        hint = "Use the name of the agent's folder"
        yield "set-id", Breach(("session_input", "app_name"), message, hint, "warning")


def _references(turns: Iterable[Invocation], names: set[str]) -> Found:
    compared = sorted(name for name in names if name in descriptions() and descriptions()[name].compares_answers)
    if not compared:
        return
    for number, turn in enumerate(turns):
        if leaves_out(turn, "final_response") or content_text(turn.get("final_response")).strip():
            continue
        message = f"this turn has no expected answer for {' and '.join(compared)} to compare with"
        hint = "The turn will score 0: add the expected answer, or remove the criterion"
        location: Location = ("conversation", number, "final_response")
        yield "empty-reference", Breach(location, message, hint, "warning")


def _calls(number: int, turn: Invocation, tools: DeclaredTools) -> Found:
    data: Location = ("conversation", number, "intermediate_data")
    places = [at for at, call, _ in _functions(data, turn.get("intermediate_data") or {}) if call is not None]
    for at, call in zip(places, tool_calls(turn), strict=True):
        yield from _call(at if "tool_uses" in at else (*at, "function_call"), call, tools)


def _call(place: Location, call: ToolCall, tools: DeclaredTools) -> Found:
    tool = tools.tools.get(call.name)
    if tool is None:
        if tools.complete and tools.tools and call.name != _TRANSFER:
            hint = nearest_hint(call.name, tools.tools, f"Its tools are {_listed(tools.tools)}")
            message = f"the agent has no tool `{call.name}`"
            yield "unknown-tool", Breach((*place, "name"), message, hint, "warning")
        return
    if tool.open or call.args is None:
        return
    for name in call.args:
        if name not in tool.arguments:
            hint = nearest_hint(name, tool.arguments, f"Its arguments are {_listed(tool.arguments) or 'none'}")
            message = f"`{call.name}` has no argument `{name}`"
            yield "unknown-argument", Breach((*place, "args", name), message, hint, "warning", on_key=True)
    yield from _types(place, call, tool)
    missing = sorted(tool.required - call.args.keys())
    if missing:
        message = f"`{call.name}` requires {_listed(missing)}, missing from the expected arguments"
        hint = "Add it to the expected arguments, or give it a default value in the tool"
        yield "unknown-argument", Breach((*place, "args"), message, hint, "warning")


def _types(place: Location, call: ToolCall, tool: DeclaredTool) -> Found:
    for name, value in (call.args or {}).items():
        allowed = tool.types.get(name)
        if allowed is not None and not allowed.allows(value):
            message = f"`{call.name}` declares `{name}` as {allowed.shown}, but the case expects {shown(value)}"
            hint = "Correct the value or the tool's annotation"
            yield "argument-type", Breach((*place, "args", name), message, hint, "warning")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def splits_a_path(name: str) -> bool:
    """Return whether ADK would read a name as a path and fail to save results."""
    return any(mark in name for mark in "/\\\0") or name in (".", "..")


def turn_problems(case: EvalCase) -> Found:
    """Yield problems of a case that do not depend on criteria. Locations are inside the case."""
    yield from _repeated_ids(case)
    for number, turn in enumerate(case.turns or ()):
        at: Location = ("conversation", number)
        yield from _message((*at, "user_content"), turn.get("user_content") or {})
        yield from _answer((*at, "final_response"), turn.get("final_response") or {})
        yield from _responses((*at, "intermediate_data"), turn)
    if case.scenario is not None and not str(case.scenario.get("starting_prompt") or "").strip():
        place: Location = ("conversation_scenario", "starting_prompt")
        yield _turns(place, "the simulated user starts with an empty message", "Write its first message")


def _repeated_ids(case: EvalCase) -> Found:
    first: dict[str, int] = {}
    for number, turn in enumerate(case.turns or ()):
        name = turn.get("invocation_id")
        if not isinstance(name, str) or not name:
            continue
        if name in first:
            message = f"turn {number + 1} has the invocation_id `{name}` of turn {first[name] + 1}"
            yield _turns(("conversation", number, "invocation_id"), message, "Give it a unique id, or none")
        first.setdefault(name, number)


def _message(place: Location, content: dict[str, Any]) -> Found:
    parts = content.get("parts") or ()
    if not content_text(content).strip() and all(set(part) <= {"text", "thought"} for part in parts):
        message = "the user's message is empty, but the agent will still be called"
        yield _turns(place, message, "Write a message, or delete the turn")
    if content.get("role") not in (None, "", "user"):
        message = f"the user's message has the role `{content['role']}`: the model sees it as its own message"
        yield _turns((*place, "role"), message, 'Use "user". Are the message and the answer swapped?')


def _answer(place: Location, content: Mapping[str, Any]) -> Found:
    if content.get("role") == "user" and not any("function_response" in part for part in content.get("parts") or ()):
        message = "the expected answer has the role `user`: it looks like a user message"
        yield _turns((*place, "role"), message, 'Use "model". Are the message and the answer swapped?')


def _responses(place: Location, turn: Invocation) -> Found:
    """Yield responses without a call. ADK pairs them by ID."""
    called: set[str] = set()
    responses: list[tuple[Location, Any]] = []
    for at, call, response in _functions(place, turn.get("intermediate_data") or {}):
        if call is not None and call.get("id"):
            called.add(call["id"])
        if response is not None and response.get("id"):
            responses.append((at, response))
    for at, response in responses:
        if response["id"] not in called:
            message = f"this response of `{response.get('name')}` has the id `{response['id']}`, but no call has it"
            yield _turns(at, message, "Use the id of its call, or delete it. Does it belong to another turn?")


def _functions(place: Location, data: Mapping[str, Any]) -> Iterator[tuple[Location, Any, Any]]:
    """Yield each call or response with its place."""
    for number, call in enumerate(data.get("tool_uses") or ()):
        yield (*place, "tool_uses", number), call, None
    for number, response in enumerate(data.get("tool_responses") or ()):
        yield (*place, "tool_responses", number), None, response
    for number, event in enumerate(data.get("invocation_events") or ()):
        for position, part in enumerate((event.get("content") or {}).get("parts") or ()):
            at: Location = (*place, "invocation_events", number, "content", "parts", position)
            yield at, part.get("function_call"), part.get("function_response")


def _turns(place: Location, message: str, hint: str) -> tuple[Rule, Breach]:
    return "turns", Breach(place, message, hint, "warning")


def history_problem(document: EvalsetDocument, cases: Sequence[int], adk: str | None) -> Problem:
    """Return what `adk eval` of this version does with the events before these cases, at the first case.

    google-adk 2.3 began to accept unknown keys in a session input. Later versions accept them, too, and read none.
    """
    numbers = re.match(r"(\d+)\.(\d+)", adk or "")
    more = f", as in {counted(len(cases) - 1, 'other case')} here" if len(cases) > 1 else ""
    if numbers is None:
        does = "google-adk 2.2 and older refuse the file, and later versions ignore the events"
    elif (int(numbers[1]), int(numbers[2])) < _KEEPS_UNKNOWN_KEYS:
        does = f"`adk eval` of google-adk {adk} refuses the file"
    else:
        does = f"`adk eval` of google-adk {adk} ignores them, and starts with an empty session"
    message = f"the session of this case has earlier events{more}: {does}"
    breach = Breach(("session_input", "events"), message, "", "note", on_key=True)
    return Problem("history", document.fault(cases[0], breach))


class SimulatedCases:
    """The scenarios of a file with the file's criteria and its agent's environment."""

    def __init__(self, config: CriteriaConfig, environment: JudgeEnvironment) -> None:
        self._config = config
        self._environment = environment
        self._cases: dict[Obstacle, list[int]] = {}

    def note(self, index: int, scenario: Mapping[str, Any], rubrics: Rubrics) -> None:
        """Add the scenario and the rubrics of the case at `index`."""
        if not self._config.broken:
            found = obstacle(self._config, scenario, rubrics, self._environment)
            if found is not None:
                self._cases.setdefault(found, []).append(index)

    def problems(self, document: EvalsetDocument) -> Iterator[Problem]:
        """Yield a problem for each cause, at the first case that has it."""
        for found, cases in self._cases.items():
            more = f", nor can {counted(len(cases) - 1, 'other case')} here" if len(cases) > 1 else ""
            message = f"this scenario cannot be simulated{more}: {found.cause}"
            breach = Breach(("conversation_scenario",), message, found.hint, "warning")
            yield Problem("simulator", document.fault(cases[0], breach))
