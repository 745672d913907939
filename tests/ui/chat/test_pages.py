"""The pages of a conversation without an agent: hostile texts, failures, states."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.hostile import HOSTILE, leaks
from tests.ui.detail.conftest import DetailApp
from workbench.events.events import (
    AgentActed,
    CaseError,
    CaseRef,
    Noticed,
    OutputCaptured,
    PlannedCase,
    TurnFinished,
    TurnStarted,
)
from workbench.files.evalset import EvalCase
from workbench.results.lines import View
from workbench.run.chat import ChatEnded, ChatOpened, StateReported, Streamed, TurnFailed
from workbench.store.execution import CaseRecord, Turn
from workbench.ui.chat.conversation import Conversation, captured_from_conversation, captured_from_record
from workbench.ui.chat.conversation_view import PAGES, ConversationView
from workbench.ui.chat.review import ReviewList
from workbench.ui.chat.screen import read_object
from workbench.ui.detail.body import Body
from workbench.ui.editing.drafts import UnreadableError

REF = CaseRef("desk", "", "", "chat")


def content(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": text}]}


def shown(talk: Conversation, width: int = 60) -> str:
    return "\n".join(line.plain for page in PAGES for line in page.build(talk, View(width, full=True)).lines)


@pytest.mark.parametrize("text", HOSTILE)
def test_control_codes_do_not_reach_the_terminal(text: str) -> None:
    text = text[:5_000]
    talk = Conversation(text, {text: text})
    acted = {"author": text, "content": {"parts": [{"function_call": {"name": text, "args": {text: text}}}]}}
    for event in (
        ChatOpened("adk", text),
        Noticed("warning", text, text),
        TurnStarted(REF, 0, content(text)),
        Streamed(text, ((text, True), (text, False))),
        AgentActed(REF, 0, acted),
        AgentActed(REF, 0, {"author": text, "content": content(text)}),
        OutputCaptured(REF, "stdout", text),
        StateReported({text: [text]}),
        TurnFailed(0, CaseError("agent_raised", text, text, text)),
        TurnStarted(REF, 0, content(text)),
        TurnFinished(REF, 0, {"user_content": content(text), "final_response": content(text)}, text),
        ChatEnded(CaseError("crashed", text, text)),
    ):
        talk.take(event)
    talk.waiting.append(content(text))
    assert not leaks(shown(talk))
    for page in PAGES:
        assert all(line.cell_len <= 60 for line in page.build(talk, View(60)).lines)
    captured = captured_from_conversation(talk, "desk", "user")
    review = ReviewList(captured)
    from workbench.editing.capture import Choice

    review._choice, review._place = Choice(text, frozenset({0})), "file"
    pieces = [piece for row in range(review.row_count()) for side in review.row_pieces(row, 60) for piece in side]
    assert not leaks("".join(piece for piece, _ in pieces))
    assert "\n" not in "".join(piece for piece, _ in pieces)


def test_header_shows_the_state_of_the_conversation() -> None:
    talk = Conversation("desk", {})
    doing = [talk.doing]
    talk.waiting.append(content("hello"))
    assert "hello" in shown(talk)
    for event in (
        ChatOpened("python", None),
        TurnStarted(REF, 0, content("hello")),
        TurnFinished(REF, 0, {"final_response": content("good day")}),
        TurnStarted(REF, 1, content("more")),
        ChatEnded(CaseError("crashed", "the process ended")),
    ):
        talk.take(event)
        doing.append(talk.doing)
    assert doing == ["starting", "answering", "answering", "waiting", "answering", "over"]
    assert not talk.waiting
    assert shown(talk).count("the process ended") == 1
    assert len(talk.finished) == 1


@pytest.mark.parametrize(
    ("opened", "named"),
    [
        (ChatOpened("adk", "2.0"), "google-adk 2.0"),
        (ChatOpened("python", None), "plain Python"),
        (ChatOpened("graph", None), "graph"),
    ],
)
def test_framework_of_a_plugin_is_named(opened: ChatOpened, named: str) -> None:
    talk = Conversation("desk", {})
    talk.take(opened)
    assert talk.framework == named


def test_turn_without_an_answer_is_left_out_with_a_note() -> None:
    talk = Conversation("desk", {"a": 1})
    talk.take(TurnStarted(REF, 0, content("lost")))
    talk.take(TurnFailed(0, CaseError("agent_raised", "KeyError: no such order")))
    talk.take(TurnStarted(REF, 0, content("found")))
    talk.take(TurnFinished(REF, 0, {"user_content": content("found"), "final_response": content("here")}))
    captured = captured_from_conversation(talk, "desk", "user")
    assert captured.state == {"a": 1}
    assert [turn["user_content"] for turn in captured.turns] == [content("found")]
    (note,) = captured.notes
    assert "lost" in note
    assert "no such order" in note


def test_state_after_a_turn_that_left_it_unreadable_is_unknown() -> None:
    talk = Conversation("desk", {"asked": 0})
    for event in (
        TurnStarted(REF, 0, content("hi")),
        StateReported({"asked": 0}),
        StateReported(None, "too large"),
        TurnFinished(REF, 0, {"user_content": content("hi"), "final_response": content("ok")}),
    ):
        talk.take(event)
    assert captured_from_conversation(talk, "desk", "user").states == (None,)


def test_unreadable_state_is_shown_with_the_reason() -> None:
    talk = Conversation("desk", {})
    talk.take(StateReported(None, "too much"))
    assert "too much" in shown(talk)


@pytest.mark.parametrize(("text", "value"), [("", {}), (" {} ", {}), ('{"a": [1]}', {"a": [1]})])
def test_session_state_is_parsed_as_an_object(text: str, value: Any) -> None:
    assert read_object(text) == value


@pytest.mark.parametrize(
    ("text", "line", "column"), [("[]", 1, 1), ('{"a": }', 1, 7), ('{\n"a" 1}', 2, 5), ('{"a": NaN}', 1, 1)]
)
def test_invalid_state_is_refused_with_its_line_and_column(text: str, line: int, column: int) -> None:
    with pytest.raises(UnreadableError) as refused:
        read_object(text)
    assert (refused.value.line, refused.value.column) == (line, column)


def test_a_state_nested_too_deeply_is_refused() -> None:
    with pytest.raises(UnreadableError):
        read_object('{"a":' * 100_000)


def test_large_state_is_cut_unless_long_texts_are_shown_in_full() -> None:
    talk = Conversation("desk", {})
    talk.take(StateReported({"numbers": list(range(3_000))}))
    cut, full = (PAGES[1].build(talk, View(60, full=full)).lines for full in (False, True))
    assert (len(cut), len(full)) == (1_005, 3_008)
    assert [line.plain.strip() for line in cut[999:1002]] == ["996,", "997,", "…"]


def test_streamed_text_is_replaced_by_its_step() -> None:
    talk = Conversation("desk", {})
    talk.take(TurnStarted(REF, 0, content("Where?")))
    for passages in ((("hm", True),), (("hm", True), ("It left", False))):
        talk.take(Streamed("desk", passages))
    lines = shown(talk).splitlines()
    assert [line.split() for line in lines[1:4]] == [
        ["user", "Where?"],
        ["thought", "desk", "hm"],
        ["says", "desk", "It", "left"],
    ]
    calls = {"author": "desk", "content": {"parts": [{"function_call": {"name": "look", "args": {}}}]}}
    talk.take(AgentActed(REF, 0, calls))
    assert "It left" in shown(talk)
    talk.take(AgentActed(REF, 0, {"author": "desk", "content": content("It left at six.")}))
    assert "\n".join(line.plain for line in PAGES[0].build(talk, View(80)).lines).count("It left") == 1
    assert "hm" not in shown(talk)


def test_streamed_text_of_a_failed_turn_stays() -> None:
    talk = Conversation("desk", {})
    talk.take(TurnStarted(REF, 0, content("Where?")))
    talk.take(Streamed("desk", (("It left", False),)))
    talk.take(TurnFailed(0, CaseError("agent_raised", "no such order")))
    assert "It left" in shown(talk)
    talk.take(TurnStarted(REF, 0, content("Where?")))
    talk.take(Streamed("desk", (("It came", False),)))
    talk.take(TurnFinished(REF, 0, {"user_content": content("Where?"), "final_response": content("It is there.")}, ""))
    assert "It came" not in shown(talk)
    assert "It is there." in shown(talk)


def test_notes_of_a_kept_run_name_missing_answers_and_changed_cases() -> None:
    turn = {"user_content": content("Where?"), "final_response": content("There.")}
    case = EvalCase("a", (), None, {"app_name": "desk", "user_id": "u", "state": {"tier": "gold"}}, (), None, {})
    record = CaseRecord(PlannedCase(REF, None, ""), expected=(turn,))
    record.turns = [Turn(content("Where?"), actual=turn), Turn(content("And then?"))]
    kept = captured_from_record(record, case, "desk")
    assert kept.state == {"tier": "gold"}
    assert kept.notes == (
        "1 turn without an answer left out",
        "the case has changed since that run: this is its current initial state",
    )
    record.turns.pop()
    assert captured_from_record(record, replace(case, turns=(turn,)), "desk").notes == ()
    assert "no longer in its file" in captured_from_record(record, None, "desk").notes[0]


def test_finished_turns_are_laid_out_once_per_width() -> None:
    talk = Conversation("desk", {})
    turn = {"user_content": content("Where?"), "final_response": content("There. " * 40)}
    for number in range(3):
        talk.take(TurnStarted(REF, number, content("Where?")))
        before = shown(talk)
        talk.take(TurnFinished(REF, number, turn, ""))
        assert shown(talk) != before
    wide, build = shown(talk, 80), PAGES[0].build
    lines = build(talk, View(80, full=True)).lines
    assert [line.plain for line in lines] == wide.splitlines()[: len(lines)]
    assert len(build(talk, View(40, full=True)).lines) > len(lines)
    assert [line.plain for line in build(talk, View(80, full=True)).lines] == [line.plain for line in lines]
    document = build(talk, View(80, full=True))
    assert [document.lines[start].plain.split()[1:3] for start in document.turns] == [
        ["turn", "1"], ["turn", "2"], ["turn", "3"]
    ]  # fmt: skip
    assert all(document.lines[document.places[f"user/{number}"].start].plain.endswith("Where?") for number in range(3))


async def test_one_key_goes_from_a_message_to_its_trace_row_and_back(repository: Path) -> None:
    app = DetailApp(repository / "themes")
    acted = [{"author": "desk", "content": content(f"said {number}")} for number in range(4)]
    talk = Conversation("desk", {})
    talk.take(ChatOpened("python", ""))
    for number in range(2):
        talk.take(TurnStarted(REF, number, content("hello")))
        for event in acted:
            talk.take(AgentActed(REF, number, event))
        talk.take(TurnFinished(REF, number, {"user_content": content("hello"), "final_response": content("said 3")}))
    async with app.run_test(size=(76, 14)) as pilot:
        view = ConversationView(talk)
        await app.mount(view)
        app.detail.display = False
        view.turn_page(3)
        view.query_one(Body).focus()
        await pilot.pause()
        view.action_move("bottom")
        view.action_to_event()
        await pilot.pause()
        (message,) = [line.strip(" ▐") for line in app.seen() if "▌" in line]
        assert message.endswith("said 3")
        view.action_to_event()
        await pilot.pause()
        item = view.query_one(Body).item
        assert item is not None
        assert item.key.startswith("span/1/"), "it is the row of that message, not the first one"
        view.turn_page(0)
        view.action_move("top")
        view.action_to_event()
        await pilot.pause()
        item = view.query_one(Body).item
        assert item is not None
        assert item.key.startswith("span/0/")
