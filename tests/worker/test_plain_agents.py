"""Plain-Python agents: what they may return and yield, and its record. One process imports each agent."""

import json
from typing import Any

import pytest

from tests.worker.client import Agent, user
from tests.worker.conftest import MakeAgent, needs_fork
from workbench.events import event_json

pytestmark = needs_fork


def steps(outcome: Any) -> list[Any]:
    """Return the recorded steps of the last turn, each as `author: part`."""
    recorded = outcome.actual[-1]["intermediate_data"]["invocation_events"]
    return [(event["author"], event["content"]["parts"][0]) for event in recorded]


@pytest.mark.parametrize(
    "source",
    [
        "def root_agent(message, session): return 'Hello ' + message",
        "async def root_agent(message, session): return 'Hello ' + message",
        "def root_agent(message, session):\n yield 'Hello '\n yield message",
        "async def root_agent(message, session):\n yield 'Hello '\n yield {'text': message}",
        "root_agent = lambda message, session: ['Hello ', {'text': message}]",
        "root_agent = lambda message, session: {'text': 'Hello ' + message}",
        "class Desk:\n async def __call__(self, message, session):\n  return 'Hello ' + message\nroot_agent = Desk()",
    ],
)
def test_every_form_of_answer_is_recorded(make_agent: MakeAgent, source: str) -> None:
    agent = make_agent(source)
    assert agent.imported["framework"] == "python"
    outcome = agent.run("Ana", "Bo")
    assert outcome.answers == ["Hello Ana", "Hello Bo"]
    assert outcome.exit_code == 0
    assert outcome.of("Ended") == [{"event": "Ended", "warnings": []}]


def test_steps_are_recorded_as_adk_records_them(make_agent: MakeAgent) -> None:
    agent = make_agent(
        """
        def root_agent(message, session):
            yield {"text": "one moment", "author": "clerk"}
            yield {"tool_call": {"name": "find", "args": {"id": "A-7"}, "id": "1"}}
            yield {"tool_response": {"name": "find", "response": [1, 2], "id": "1"}}
            yield {"function_call": {"name": "close"}}
            yield {"function_response": {"name": "close", "response": {"ok": True}}}
            yield "done"
        """
    )
    outcome = agent.run("hi")
    assert steps(outcome) == [
        ("clerk", {"text": "one moment"}),
        ("desk", {"function_call": {"name": "find", "args": {"id": "A-7"}, "id": "1"}}),
        ("desk", {"function_response": {"name": "find", "response": {"result": [1, 2]}, "id": "1"}}),
        ("desk", {"function_call": {"name": "close", "args": {}}}),
        ("desk", {"function_response": {"name": "close", "response": {"ok": True}}}),
    ]
    assert outcome.answers == ["done"]
    assert outcome.actual[0]["user_content"] == {"role": "user", "parts": [{"text": "hi"}]}
    acted = [event["acted"]["content"]["parts"][0] for event in outcome.of("AgentActed")]
    assert acted == [part for _, part in steps(outcome)] + [{"text": "done"}]


def test_every_event_decodes_as_a_workbench_event(make_agent: MakeAgent) -> None:
    outcome = make_agent("def root_agent(message, session):\n yield {'tool_call': {'name': 'f'}}\n yield 'x'").run("hi")
    case = {"agent": "desk", "evalset_file": "a", "eval_set_id": "b", "eval_id": "c", "repeat": 1}
    kinds = []
    for event in outcome.events:
        if event["event"] not in ("Spans", "Touched", "Ended"):
            kinds.append(type(event_json.from_json({**event, "case": case})).__name__)
    assert kinds == ["AgentActed", "AgentActed", "TurnFinished"]


def test_session_lasts_for_the_case_and_no_longer(make_agent: MakeAgent) -> None:
    agent = make_agent(
        """
        import json
        SEEN = []

        def root_agent(message, session):
            SEEN.append(message)
            session.state["count"] = session.state.get("count", 0) + 1
            history = [(turn["user"], turn["answer"][:1]) for turn in session.history]
            who = [session.id, session.app_name, session.user_id]
            return json.dumps([session.state, history, who, SEEN, message.content["parts"][0]["text"]])
        """
    )
    session = {"app_name": "shop", "user_id": "u1", "session_id": "s1", "state": {"customer": "Ana"}}
    for _ in range(2):
        first, second = map(json.loads, filter(None, agent.run("a", "b", session=session).answers))
        assert first == [{"customer": "Ana", "count": 1}, [], ["s1", "shop", "u1"], ["a"], "a"]
        assert second == [{"customer": "Ana", "count": 2}, [["a", "["]], ["s1", "shop", "u1"], ["a", "b"], "b"]


def test_usage_is_counted_and_recorded(make_agent: MakeAgent) -> None:
    outcome = make_agent(
        """
        def root_agent(message, session):
            yield {"usage": {"input_tokens": 10, "output_tokens": 2}}
            yield "x"
        """
    ).run("a", "b")
    assert [tuple(event["usage"].values()) for event in outcome.of("TurnFinished")] == [(1, 10, 2), (2, 20, 4)]
    assert outcome.actual[0]["intermediate_data"]["invocation_events"] == [
        {"author": "desk", "usage_metadata": {"prompt_token_count": 10, "candidates_token_count": 2}}
    ]


def test_message_is_text_with_its_content(make_agent: MakeAgent) -> None:
    agent = make_agent("def root_agent(message, session): return f'{message}|{len(message.content[\"parts\"])}'")
    content = {"role": "user", "parts": [{"text": "a"}, {"inline_data": {"data": "AA=="}}, {"text": "b\ud800"}]}
    assert agent.run(content).answers == ["a\nb\ud800|3"]


def test_message_is_recorded_as_the_user_sent_it(make_agent: MakeAgent) -> None:
    source = "def root_agent(m, s):\n    m.content['parts'].insert(0, {'text': 'Be kind.'})\n    return 'ok'"
    (actual,) = make_agent(source).run("hello").actual
    assert actual["user_content"] == user("hello")


def test_steps_are_recorded_as_they_were_when_yielded(make_agent: MakeAgent) -> None:
    outcome = make_agent(
        """
        def root_agent(message, session):
            args = {"n": 1}
            yield {"tool_call": {"name": "f", "args": args}}
            args["n"] = 2
            yield "x"
        """
    ).run("hi")
    assert steps(outcome) == [("desk", {"function_call": {"name": "f", "args": {"n": 1}}})]


def test_arguments_without_a_json_form_do_not_fail_the_case(make_agent: MakeAgent) -> None:
    outcome = make_agent(
        """
        import datetime, math

        def root_agent(message, session):
            circle = []
            circle.append(circle)
            args = {"o": object, "nan": math.nan, "s": "\\ud800", "b": b"\\xff", "set": {1}, 5: circle}
            yield {"tool_call": {"name": "f", "args": args}}
            yield "x\\udfff"
        """
    ).run("hi")
    ((_, part),) = steps(outcome)
    args = part["function_call"]["args"]
    assert args.pop("nan") != 0
    assert args == {
        "o": "<class 'object'>",
        "s": "\ud800",
        "b": "_w==",
        "set": [1],
        "5": ["<circular reference>"],
    }
    assert outcome.answers == ["x\udfff"]


def test_turn_in_which_nothing_happens_is_an_error(make_agent: MakeAgent) -> None:
    outcome = make_agent("def root_agent(message, session):\n if message == 'a': yield 'x'").run("a", "b")
    assert outcome.answers == ["x"]
    assert outcome.of("Failed")[0]["turn"] == 1
    assert outcome.error["kind"] == "turn_count"
    assert outcome.error["message"].startswith("turn 2: ")


def test_steps_without_an_answer_are_a_turn_with_a_note(make_agent: MakeAgent) -> None:
    outcome = make_agent("def root_agent(message, session): return {'tool_call': {'name': 'f'}}").run("a")
    assert outcome.answers == [None]
    assert outcome.of("TurnFinished")[0]["note"] == "the agent gave no final answer"


@pytest.mark.parametrize(
    ("item", "message_end"),
    [
        ("5", "not int: 5"),
        ("{'txt': 'x'}", "not dict: {'txt': 'x'}"),
        ("{'tool_call': 'find'}", "tool_call must be dict, not str: 'find'"),
        ("{'tool_call': {'args': {}}}", "tool_call.name must be str, not NoneType: None"),
        ("{'tool_call': {'name': 'f', 'args': [1]}}", "tool_call.args must be dict, not list: [1]"),
        ("{'text': 5}", "text must be str, not int: 5"),
        ("{'usage': {'input_tokens': 'many'}}", "usage.input_tokens must be int, not str: 'many'"),
    ],
)
def test_unknown_item_yielded_by_an_agent_is_named(make_agent: MakeAgent, item: str, message_end: str) -> None:
    outcome = make_agent(f"def root_agent(message, session):\n yield {item}").run("a")
    assert outcome.error["kind"] == "agent_raised"
    assert outcome.error["message"].endswith(message_end)


def test_exception_is_reported_with_the_agents_lines(make_agent: MakeAgent) -> None:
    source = """
        import json

        def root_agent(message, session):
            try:
                return look_up("A-7")
            except KeyError as error:
                raise ValueError("no such order") from error

        def look_up(number):
            return {}[number]
        """
    error = make_agent(source).run("a").error
    assert error["kind"] == "agent_raised"
    assert error["message"] == "ValueError: no such order (caused by KeyError: 'A-7')"
    lines = error["traceback"].splitlines()
    assert [line.strip() for line in lines if "agent.py" not in line and line.startswith("    ")] == [
        'return look_up("A-7")',
        "return {}[number]",
        'raise ValueError("no such order") from error',
    ]
    assert "worker" not in error["traceback"]


def test_output_is_reported_for_the_case(make_agent: MakeAgent) -> None:
    agent = make_agent(
        """
        import os, sys
        print("imported")

        def root_agent(message, session):
            print("asked", message)
            os.write(2, b"straight\\n")
            os.system("echo from a child")
            return "x"
        """
    )
    outcome = agent.run("hi")
    assert outcome.stdout == b"asked hi\nfrom a child\n"
    assert outcome.stderr == b"straight\n"
    assert agent.output() == (b"imported\n", b"")


def test_each_case_has_its_own_copy_of_the_modules(make_agent: MakeAgent) -> None:
    agent: Agent = make_agent("SEEN = []\ndef root_agent(m, s):\n SEEN.append(m)\n return ','.join(SEEN)")
    started = [agent.start() for _ in range(5)]
    assert [case.play([f"{index}", "x"]).answers for index, case in enumerate(started)] == [
        [f"{index}", f"{index},x"] for index in range(5)
    ]


def test_variables_of_a_case_are_set_only_for_this_case(make_agent: MakeAgent) -> None:
    agent = make_agent(
        "import os\ndef root_agent(m, s): return os.environ.get('ONE', '-') + os.environ.get('TWO', '-')",
        env={"ONE": "1"},
    )
    assert agent.run("a", env={"TWO": "2"}).answers == ["12"]
    assert agent.run("a").answers == ["1-"]
