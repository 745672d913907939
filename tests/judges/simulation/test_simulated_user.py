"""A simulated user from its first message to its last, played by a scripted judge."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.judges.simulation.conversations import Player, turn
from workbench.judges.base import JudgeFault, Question, Reply
from workbench.judges.scenario import Behavior, Persona, Scenario, SimulatorConfig
from workbench.judges.simulated_user import Ended, Failed, SimulatedMessage, SimulatedUser, Step

SCENARIO = Scenario("A boat, please", "Buy the red one")


async def play(
    answer: Callable[[Question], str | Reply],
    turns: list[dict[str, Any]],
    scenario: Scenario = SCENARIO,
    **config: Any,
) -> tuple[Step, Player]:
    player = Player(answer)
    user = SimulatedUser(scenario, SimulatorConfig(**config), player)
    for made in turns:
        user.add_turn(made)
    return await user.next(), player


def never(question: Question) -> str:
    raise AssertionError("nobody was to be asked")


async def test_first_message_is_the_unchanged_starting_prompt() -> None:
    step, _ = await play(never, [], Scenario("  A boat,\nplease ", "p"))
    assert step == SimulatedMessage("  A boat,\nplease ")


async def test_starting_prompt_with_the_stop_signal_ends_the_conversation() -> None:
    step, _ = await play(never, [], Scenario("Bye </FINISHED>", "p"))
    assert step == Ended("stop_signal")


async def test_later_messages_come_from_the_judge() -> None:
    step, player = await play(lambda question: "  The red one\n", [turn("A boat, please", "Which one?")])
    assert isinstance(step, SimulatedMessage)
    assert step.text == "The red one"
    (question,) = player.asked
    assert step.question["prompt"] == question.prompt
    assert step.question["judge"]["model"] == "python:tests:player"
    assert step.question["replies"][0]["verdict"] == "said"


async def test_thoughts_are_neither_a_message_nor_a_stop_signal() -> None:
    reply = "<think>It is too early for </finished>.</think>\nThe red one"
    step, _ = await play(lambda question: reply, [turn("A boat, please", "Which one?")])
    assert isinstance(step, SimulatedMessage)
    assert step.text == "The red one"


@pytest.mark.parametrize("reply", ["</finished>", "Thanks! </Finished> Bye", "</FINISHED>\n"])
async def test_stop_signal_anywhere_in_the_reply_ends_the_conversation(reply: str) -> None:
    step, _ = await play(lambda question: reply, [turn("A boat, please", "Sold")])
    assert isinstance(step, Ended)
    assert step.how == "stop_signal"
    assert step.question["replies"][0]["text"] == reply


@pytest.mark.parametrize(("limit", "made", "ends"), [(0, 0, True), (1, 1, True), (2, 1, False), (-1, 40, False)])
async def test_turn_limit_counts_the_starting_prompt(limit: int, made: int, ends: bool) -> None:
    step, player = await play(lambda question: "More", [turn("x", "y")] * made, max_allowed_invocations=limit)
    assert (step == Ended("turn_limit")) is ends
    assert bool(player.asked) is not ends


@pytest.mark.parametrize(
    ("reply", "words", "hint"),
    [
        (Reply(""), "the reply was empty", ""),
        (Reply(" \n"), "the reply was empty", ""),
        (Reply(None), "the reply was empty", ""),
        (
            Reply(None, JudgeFault("quota", "too many", "429 RESOURCE_EXHAUSTED")),
            "429 RESOURCE_EXHAUSTED: too many",
            "quota",
        ),
        (Reply(None, JudgeFault("limit", "the limit of 5 calls is reached")), "the limit of 5", "--max-judge-calls"),
        (Reply(None, JudgeFault("blocked", "SAFETY")), "SAFETY", "refused"),
    ],
)
async def test_reply_without_text_is_a_failure(reply: Reply, words: str, hint: str) -> None:
    step, _ = await play(lambda question: reply, [turn("A boat, please", "Which one?")])
    assert isinstance(step, Failed)
    assert words in step.message
    assert hint in step.hint
    assert step.question["replies"][0]["unread"]


async def test_persona_that_cannot_be_rendered_is_a_failure() -> None:
    persona = Persona("P", "{{ 1 // 0 }}", (Behavior("b", "d", ("i",), ("v",)),))
    step, _ = await play(never, [turn("a", "b")], Scenario("a", "p", persona))
    assert isinstance(step, Failed)
    assert step.message.startswith("the persona's texts cannot be rendered: ZeroDivisionError")


async def test_different_history_gives_a_different_question() -> None:
    _, one = await play(lambda question: "x", [turn("A boat, please", "Which one?")])
    _, other = await play(lambda question: "x", [turn("A boat, please", "Which colour?")])
    assert one.asked[0].prompt != other.asked[0].prompt


async def test_question_includes_calls_if_the_config_says_so() -> None:
    call = {"author": "desk", "content": {"parts": [{"function_call": {"name": "find_boat", "args": {}}}]}}
    for wanted in (False, True):
        _, player = await play(lambda question: "x", [turn("a", "b", call)], include_function_calls=wanted)
        assert ("find_boat" in player.asked[0].prompt) is wanted
