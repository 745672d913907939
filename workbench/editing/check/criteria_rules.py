"""Rules for criteria configs, given the cases and agents that they apply to, and rules for single cases."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.agents.declared_tools import DeclaredTools
from workbench.agents.python_source import fails_in_adk, missing_evaluate, missing_function
from workbench.criteria.custom import function_path
from workbench.criteria.description import JUDGE, RUBRICS
from workbench.criteria.json_difference import shown
from workbench.criteria.registry import described_criteria, descriptions, rubric_types
from workbench.editing.check.problem import Problem, Rule
from workbench.files.criteria import CriteriaConfig
from workbench.files.evalset import EvalCase, EvalsetDocument
from workbench.files.faults import Breach, Location, nearest_hint
from workbench.files.invocation import Invocation, ToolCall, content_text, leaves_out, tool_calls
from workbench.files.metrics_config import own_entry
from workbench.files.spelling import get, key_for
from workbench.judges.base import JudgeEnvironment, NotAvailableError, read_judge_options
from workbench.judges.clients import vertex_access
from workbench.judges.kinds import identify_judge, is_own, kind_of, retires, successor_hint, suggested_name
from workbench.run.plan.plan import unused_expectations
from workbench.run.plan.preflight_cases import Obstacle, lacks_rubrics, models_by_user
from workbench.text.counting import counted
from workbench.text.json_values import string

Found = Iterator[tuple[Rule, Breach]]


@dataclass(frozen=True, slots=True)
class CaseCounts:
    """Summary of the cases under a config: counts with and without a simulated user, and rubric types."""

    scenarios: int = 0
    conversations: int = 0
    rubric_types: frozenset[str] = frozenset()

    def plus(self, other: "CaseCounts") -> "CaseCounts":
        """Return the sum of both."""
        scenarios, conversations = self.scenarios + other.scenarios, self.conversations + other.conversations
        return CaseCounts(scenarios, conversations, self.rubric_types | other.rubric_types)


def count_case(case: EvalCase) -> CaseCounts:
    """Return the summary of one case."""
    own = (turn.get("rubrics") or () for turn in case.turns or ())
    rubrics = [*case.rubrics, *(rubric for some in own for rubric in some)]
    types = frozenset(str(rubric["type"]) for rubric in rubrics if rubric.get("type"))
    return CaseCounts(int(case.turns is None), int(case.turns is not None), types)


def criteria_problems(config: CriteriaConfig) -> Found:
    """Yield the problems that do not depend on cases. Locations are in the config file."""
    for criterion, info in described_criteria(config):
        place: Location = ("criteria", criterion.name)
        yield from empty_rubrics(placed_rubrics((*place, RUBRICS), criterion.options.get(RUBRICS)))
        options = criterion.options.get(JUDGE)
        model = get(options, "judge_model")
        better = suggested_name(model) if isinstance(model, str) and not _of_a_plugin(model) else None
        if better is not None:
            message = f"the judge model `{model}` looks misspelled"
            found = (*place, JUDGE, key_for(options, "judge_model", camel=False))
            yield "judge", Breach(found, message, f"Did you mean `{better}`?", "warning")
        if criterion.threshold > info.highest and not info.informational:
            message = f"the threshold {criterion.threshold:g} is above the highest score {info.highest:g}"
            hint = f"Scores go from {info.range}: choose a threshold in this range"
            yield "never-passes", Breach(place, message, hint, "warning")
        for option, value, only in info.useless_options(criterion.options):
            message = f"the simulated user ends with `{only}`, but this criterion waits for `{value}`"
            yield "stop-signal", Breach((*place, option), message, f"Remove `{option}`", "warning")


def _of_a_plugin(model: str) -> bool:
    """Return whether the model belongs to a judge from another package, whose models are unknown here."""
    try:
        return not is_own(kind_of(model))
    except NotAvailableError:
        return False


def use_problems(config: CriteriaConfig, counts: CaseCounts) -> Found:
    """Yield a problem for each criterion that does not apply to any case."""
    rubrics = [{"type": each} for each in counts.rubric_types]
    for criterion, info in described_criteria(config):
        if counts.scenarios and not counts.conversations and (info.needs_reference or info.scenarios == "no"):
            why = "all cases here have a simulated user, so there is no reference to compare with"
            hint = "Remove it, or move its cases to another folder"
        elif counts.conversations and not counts.scenarios and info.scenarios == "only":
            why, hint = "no case here has a simulated user", "Remove it, or add a case with a scenario"
        elif (counts.scenarios or counts.conversations) and lacks_rubrics(criterion, rubrics):
            kind = info.rubric_type
            why = f"neither the criterion nor any case or turn has a rubric of the type {kind}"
            hint = f'Add `rubrics` to the criterion, or set "type": "{kind}" in the rubrics of the cases'
        else:
            continue
        message = f"`{criterion.name}` does not apply: {why}"
        yield "cannot-apply", Breach(("criteria", criterion.name), message, hint, "warning")


def function_problems(config: CriteriaConfig, root: Path, folder: Path) -> Found:
    """Yield a problem for each custom metric whose function is missing or that `adk eval` cannot use.

    The functions are looked up from `folder`, the agent's folder. Nothing is imported.
    """
    for criterion in config.criteria:
        own = config.custom_metrics.get(criterion.name)
        if of_agents_cli := own_entry(own):
            if of_agents_cli["kind"] == "function" and (why := missing_evaluate(of_agents_cli, root)):
                yield "function", Breach(("custom_metrics", criterion.name), f"`{criterion.name}`: {why}")
        elif own is not None and (why := missing_function(function_path(own), root, folder)):
            message = f"`{criterion.name}` cannot be computed: {why}"
            hint = "`code_config` needs package.module.function, importable from the agent's folder or above"
            yield "function", Breach(("custom_metrics", criterion.name), message, hint)
        elif own is not None and (how := fails_in_adk(function_path(own), root, folder)):
            message = f"`{criterion.name}` does not work under `adk eval`: {how}"
            yield "function", Breach(("custom_metrics", criterion.name), message, "", "note")


def judge_problems(config: CriteriaConfig, environment: JudgeEnvironment) -> Found:
    """Yield a problem for each criterion whose judge or evaluation service is not available."""
    for criterion in config.criteria:
        own = own_entry(config.custom_metrics.get(criterion.name))
        if own.get("kind") == "service" and config.broken and not own["metric"]:
            continue  # Its definition may be what is broken.
        reason = None
        if own.get("kind") == "template":
            reason = _obstacle(own["judge_model_options"], environment)
        elif own.get("kind") == "service":
            unknown = NotAvailableError("only Google's evaluation service can evaluate it")
            reason = _service_obstacle(environment) if own["metric"] else unknown
        if reason is not None:
            nearest = f"the nearest criterion here is {own['nearest']}" if own.get("nearest") else ""
            hint = "; ".join(filter(None, (reason.hint, nearest)))
            message = f"`{criterion.name}` would not be evaluated: {reason}"
            yield "judge", Breach(("criteria", criterion.name), message, hint, "warning")
    for criterion, info in described_criteria(config):
        reason = None
        if info.supported and info.needs_service:
            reason = _service_obstacle(environment)
        elif info.supported and info.needs_judge:
            reason = _obstacle(criterion.options.get(JUDGE) or {}, environment)
        if reason is not None:
            message = f"`{criterion.name}` would not be evaluated: {reason}"
            yield "judge", Breach(("criteria", criterion.name), message, reason.hint, "warning")


def retiring_models(config: CriteriaConfig, counts: CaseCounts) -> Found:
    """Yield a problem for each judge or simulated user whose model has an announced end. Default models count, too."""
    for place, who, model in models_by_user(config, scenarios=bool(counts.scenarios)):
        if message := retires(who, model):
            yield "retires", Breach(place, message, successor_hint(model), "warning")


def _obstacle(options: Mapping[str, Any], environment: JudgeEnvironment) -> NotAvailableError | None:
    try:
        identify_judge(read_judge_options(options), environment)
    except NotAvailableError as error:
        return error
    except ValueError:
        return None  # Wrong options are reported as a fault of the config.
    return None


def _service_obstacle(environment: JudgeEnvironment) -> NotAvailableError | None:
    try:
        vertex_access(environment.values)
    except NotAvailableError as error:
        return error
    return None


Placed = list[tuple[Location, Mapping[str, object]]]


def rubric_problems(case: EvalCase, names: set[str]) -> Found:
    """Yield the problems of a case's rubrics, given the names of its criteria. Locations are inside the case."""
    case_rubrics = placed_rubrics(("rubrics",), case.rubrics)
    turn_rubrics = [
        placed_rubrics(("conversation", number, "rubrics"), turn.get("rubrics") or ())
        for number, turn in enumerate(case.turns or ())
    ]
    for rubrics in (case_rubrics, *turn_rubrics):
        yield from _types(rubrics, names)
        yield from empty_rubrics(rubrics)
    # ADK appends a turn's rubrics to those of the case. Two turns may use the same ID.
    yield from _twice(case_rubrics, {})
    first = {str(rubric.get("rubric_id")): "the case" for _, rubric in case_rubrics}
    for rubrics in turn_rubrics:
        yield from _twice(rubrics, first)


def empty_rubrics(rubrics: Placed) -> Found:
    """Yield a problem for each rubric without text. Keys may be snake_case or camelCase."""
    for place, rubric in rubrics:
        if not string(get(get(rubric, "rubric_content"), "text_property")).strip():
            message = f"the rubric `{get(rubric, 'rubric_id')}` has no text, so there is nothing to judge"
            hint = "Write the requirement into rubric_content.text_property"
            yield "empty-rubric", Breach(place, message, hint, "warning")


def placed_rubrics(above: Location, rubrics: object) -> Placed:
    """Return the objects in a list of rubrics, each with its location, or [] if `rubrics` is not a list."""
    every = rubrics if isinstance(rubrics, list | tuple) else ()
    return [((*above, number), rubric) for number, rubric in enumerate(every) if isinstance(rubric, dict)]


def _types(rubrics: Placed, names: set[str]) -> Found:
    types = rubric_types()
    every = list(types.values())
    wanted = {name: kind for name, kind in types.items() if name in names}
    for place, rubric in rubrics:
        kind = rubric.get("type")
        if kind in wanted.values() or not (wanted or kind not in every):
            continue
        given = f"has the type `{kind}`" if kind else "has no type"
        if kind in every:
            message = f"this rubric {given}, which no criterion here uses"
            hint = f"The criteria here use {' and '.join(sorted(wanted.values()))}"
        else:
            message = f"this rubric {given}: ADK ignores it"
            hint = f"The types are {', '.join(every)}"
        yield "untyped-rubric", Breach(place, message, hint, "warning")


def _twice(rubrics: Placed, first: Mapping[str, str]) -> Found:
    seen = dict(first)
    for place, rubric in rubrics:
        name = str(rubric.get("rubric_id"))
        if name in seen:
            message = f"the rubric_id `{name}` is already used in {seen[name]}: ADK ends the whole run with an error"
            yield "same-rubric", Breach((*place, "rubric_id"), message, "Use another rubric_id", "warning")
        seen.setdefault(name, "this list")


_TRANSFER = "transfer_to_agent"
_KEEPS_UNKNOWN_KEYS = (2, 3)


def case_problems(case: EvalCase, config: CriteriaConfig, tools: DeclaredTools) -> Found:
    """Yield the problems of a case under the criteria of `config`. Locations are inside the case."""
    names = {criterion.name for criterion in config.criteria}
    yield from (("unused", breach) for breach in unused_expectations(case, config))
    yield from _references(case.turns or (), names)
    yield from turn_problems(case)
    yield from rubric_problems(case, names)
    if any(name in descriptions() and descriptions()[name].compares_calls for name in names):
        for number, turn in enumerate(case.turns or ()):
            data: Location = ("conversation", number, "intermediate_data")
            places = [at for at, call, _ in _functions(data, turn.get("intermediate_data") or {}) if call is not None]
            for at, call in zip(places, tool_calls(turn), strict=True):
                yield from _call(at if "tool_uses" in at else (*at, "function_call"), call, tools)
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
    for name, value in call.args.items():
        allowed = tool.types.get(name)
        if allowed is not None and not allowed.allows(value):
            message = f"`{call.name}` declares `{name}` as {allowed.shown}, but the case expects {shown(value)}"
            hint = "Correct the value or the tool's annotation"
            yield "argument-type", Breach((*place, "args", name), message, hint, "warning")
    missing = sorted(tool.required - call.args.keys())
    if missing:
        message = f"`{call.name}` requires {_listed(missing)}, missing from the expected arguments"
        them, default = ("it", "a default value") if len(missing) == 1 else ("them", "default values")
        hint = f"Add {them} to the expected arguments, or give {them} {default} in the tool"
        yield "unknown-argument", Breach((*place, "args"), message, hint, "warning")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def splits_a_path(name: str) -> bool:
    """Return whether ADK would read a name as a path and fail to save results."""
    return any(mark in name for mark in "/\\\0") or name in (".", "..")


def turn_problems(case: EvalCase) -> Found:
    """Yield problems of a case's turns or scenario that do not depend on criteria. Locations are inside the case."""
    yield from _repeated_ids(case)
    for number, turn in enumerate(case.turns or ()):
        at: Location = ("conversation", number)
        yield from _message((*at, "user_content"), turn.get("user_content") or {})
        content = turn.get("final_response") or {}
        responds = any("function_response" in part for part in content.get("parts") or ())
        if content.get("role") == "user" and not responds:
            message = "the expected answer has the role `user`: it looks like a user message"
            answer = (*at, "final_response", "role")
            yield _turns(answer, message, 'Use "model". Are the message and the answer swapped?')
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


def _responses(place: Location, turn: Invocation) -> Found:
    """Yield a problem for each response whose ID no call of the turn has. ADK pairs calls and responses by ID."""
    steps = list(_functions(place, turn.get("intermediate_data") or {}))
    called = {call["id"] for _, call, _ in steps if call is not None and call.get("id")}
    for at, _, response in steps:
        if response is not None and response.get("id") and response["id"] not in called:
            message = f"this response of `{response.get('name')}` has the id `{response['id']}`, but no call has it"
            yield _turns(at, message, "Use the id of its call, or delete it. Does it belong to another turn?")


def _functions(place: Location, data: Mapping[str, Any]) -> Iterator[tuple[Location, Any, Any]]:
    """Yield the location of each step, with its call or None and its response or None."""
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
    """Return a note that `adk eval` rejects or ignores the session events of these cases, placed at the first case.

    `adk` is the version of google-adk, or None if unknown. Since 2.3 it accepts unknown keys in a session input, and
    ignores them.
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


def simulator_problems(document: EvalsetDocument, found: Mapping[Obstacle, Sequence[int]]) -> Iterator[Problem]:
    """Yield a problem for each cause why scenarios cannot be simulated, at the first of its cases (`found`)."""
    for cause, cases in found.items():
        more = f", nor can {counted(len(cases) - 1, 'other case')} here" if len(cases) > 1 else ""
        message = f"this scenario cannot be simulated{more}: {cause.cause}"
        breach = Breach(("conversation_scenario",), message, cause.hint, "warning")
        yield Problem("simulator", document.fault(cases[0], breach))
