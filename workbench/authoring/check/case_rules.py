"""What is odd about one case under the criteria that hold for it."""

from collections.abc import Iterable, Iterator

from workbench.agents.declared_tools import DeclaredTool, DeclaredTools
from workbench.authoring.check.problem import Rule
from workbench.authoring.check.rubric_rules import rubric_problems
from workbench.authoring.check.turn_rules import turn_problems
from workbench.metrics.json_difference import shown
from workbench.metrics.registry import known
from workbench.model.breaches import Breach, nearest
from workbench.model.criteria import Criterion
from workbench.model.evalset import EvalCase
from workbench.model.invocation import Invocation, ToolCall, content_text, tool_calls
from workbench.model.places import Location

Found = Iterator[tuple[Rule, Breach]]
_TRANSFER = "transfer_to_agent"


def case_problems(case: EvalCase, criteria: Iterable[Criterion], tools: DeclaredTools) -> Found:
    """Locations are those inside the case."""
    names = {criterion.name for criterion in criteria}
    yield from _references(case.turns or (), names)
    yield from turn_problems(case)
    yield from rubric_problems(case, names)
    if any(name in known() and known()[name].compares_calls for name in names):
        for number, turn in enumerate(case.turns or ()):
            yield from _calls(number, turn, tools)
    app = (case.session_input or {}).get("app_name")
    if isinstance(app, str) and splits_a_path(app):
        message = f"ADK cannot save results of the app `{app}`: the name would be a path"
        hint = "Write the name of the agent's folder"
        yield "set-id", Breach(("session_input", "app_name"), message, hint, "warning")


def _references(turns: Iterable[Invocation], names: set[str]) -> Found:
    compared = sorted(name for name in names if name in known() and known()[name].compares_answers)
    if not compared:
        return
    for number, turn in enumerate(turns):
        if content_text(turn.get("final_response")).strip():
            continue
        message = f"no answer is expected here, and {' and '.join(compared)} would compare with it"
        hint = "Such a turn scores 0: write the expected answer, or leave the criterion out"
        location: Location = ("conversation", number, "final_response")
        yield "empty-reference", Breach(location, message, hint, "warning")


def _calls(number: int, turn: Invocation, tools: DeclaredTools) -> Found:
    data = turn.get("intermediate_data") or {}
    written = bool(data.get("tool_uses"))
    places = list(_call_places(number, turn)) if not written else []
    for position, call in enumerate(tool_calls(turn)):
        place: Location = ("conversation", number, "intermediate_data")
        place = (*place, "tool_uses", position) if written else places[position]
        yield from _call(place, call, tools)


def _call_places(number: int, turn: Invocation) -> Iterator[Location]:
    events = (turn.get("intermediate_data") or {}).get("invocation_events") or ()
    for index, event in enumerate(events):
        for position, part in enumerate((event.get("content") or {}).get("parts") or ()):
            if part.get("function_call") is not None:
                above: Location = ("conversation", number, "intermediate_data", "invocation_events", index)
                yield (*above, "content", "parts", position, "function_call")


def _call(place: Location, call: ToolCall, tools: DeclaredTools) -> Found:
    tool = tools.tools.get(call.name)
    if tool is None:
        if tools.complete and tools.tools and call.name != _TRANSFER:
            meant = nearest(call.name, tools.tools)
            hint = f"Did you mean `{meant}`?" if meant else f"It has {_listed(tools.tools)}"
            message = f"the agent has no tool `{call.name}`"
            yield "unknown-tool", Breach((*place, "name"), message, hint, "warning")
        return
    if tool.open or call.args is None:
        return
    for name in call.args:
        if name not in tool.arguments:
            meant = nearest(name, tool.arguments)
            hint = f"Did you mean `{meant}`?" if meant else f"It takes {_listed(tool.arguments) or 'none'}"
            message = f"`{call.name}` takes no argument `{name}`"
            yield "unknown-argument", Breach((*place, "args", name), message, hint, "warning", on_key=True)
    yield from _types(place, call, tool)
    missing = sorted(tool.required - call.args.keys())
    if missing:
        message = f"`{call.name}` needs {_listed(missing)}, which is not in the expected arguments"
        hint = "Expect it too, or give it a default value in the tool"
        yield "unknown-argument", Breach((*place, "args"), message, hint, "warning")


def _types(place: Location, call: ToolCall, tool: DeclaredTool) -> Found:
    for name, value in (call.args or {}).items():
        allowed = tool.types.get(name)
        if allowed is not None and not allowed.allows(value):
            message = f"`{call.name}` declares `{name}` as {allowed.shown}, and {shown(value)} is expected here"
            hint = "Correct the value, or the annotation in the tool"
            yield "argument-type", Breach((*place, "args", name), message, hint, "warning")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def splits_a_path(name: str) -> bool:
    """Whether ADK would take a name for a path when it saves results, and fail."""
    return any(mark in name for mark in "/\\\0") or name in (".", "..")
