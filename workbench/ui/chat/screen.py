"""The screen of a conversation with an agent: the turns above, and the next message below."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static
from textual.widgets.text_area import Edit, EditResult

from workbench.text.safe_text import one_line
from workbench.ui.actions import footer
from workbench.ui.chat.conversation import ChatLink, Conversation
from workbench.ui.chat.conversation_view import ConversationView
from workbench.ui.dialogs.pick import show_keys
from workbench.ui.dialogs.screens import Batches
from workbench.ui.editing.drafts import UnreadableError
from workbench.ui.editing.field import PlainTextArea, typed
from workbench.ui.widgets.footer import KeyLine, bindings, bindings_of

_WAYS = "A JSON object. ctrl+o accepts, esc closes."


class StateScreen(ModalScreen[dict[str, Any] | None]):
    """A dialog that edits an object as JSON. Its result is the object, or None if the user cancels."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+o", "take", priority=True),
        Binding("escape", "dismiss", priority=True),
    ]

    def __init__(self, title: str, value: dict[str, Any]) -> None:
        super().__init__()
        self._title, self._value = title, value

    def compose(self) -> ComposeResult:
        """Lay out the field and its help."""
        with Vertical(classes="dialog -state") as dialog:
            dialog.border_title = Content(self._title)
            yield PlainTextArea(show_line_numbers=True, tab_behavior="indent")
            yield Static(_WAYS, classes="help", markup=False)

    def on_mount(self) -> None:
        """Load the object into the field."""
        field = self.query_one(PlainTextArea)
        field.load_text(json.dumps(self._value, indent=2, ensure_ascii=False) if self._value else "{\n  \n}")
        field.move_cursor(field.document.end if self._value else (1, 2))
        field.focus()

    def action_take(self) -> None:
        """Accept the object, or show the error in the text."""
        field = self.query_one(PlainTextArea)
        try:
            self.dismiss(read_object(field.text))
        except UnreadableError as error:
            field.move_cursor((error.line - 1, error.column - 1))
            message = one_line(f"line {error.line}, column {error.column}: {error}")
            self.query_one(".help", Static).update(Content(message))


def read_object(text: str) -> dict[str, Any]:
    """Parse a JSON object. An empty text is an empty object.

    Raises:
        UnreadableError: The text is not valid JSON, or not an object.
    """
    try:
        value = json.loads(text, parse_constant=_no_number) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise UnreadableError(error.lineno, error.colno, error.msg) from None
    except (ValueError, RecursionError) as error:
        raise UnreadableError(1, 1, str(error)) from None
    if not isinstance(value, dict):
        raise UnreadableError(1, 1, "the state must be an object: {…}")
    return value


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


Connect = Callable[[dict[str, Any], Callable[[], None]], ChatLink]
"""Starts a conversation with an initial session state. The callback is called from another thread on new events."""
LONGEST = 100_000
"""Maximum length of a message, in characters."""
_TYPING = " enter sends · esc {} · ctrl+n new line · tab pages · pgup pgdn scroll"
"""Keys shown while typing, most important first. A narrow screen shows only some."""


@dataclass(frozen=True, slots=True)
class ForkAsked:
    """The screen's result if the user forks the conversation. `names` identify the place under the cursor."""

    names: tuple[str, ...]


class MessageBox(PlainTextArea):
    """A text field that grows with its lines. Enter sends the message.

    Line breaks in pasted text stay. ctrl+n inserts a line break, and so does shift+enter if the terminal distinguishes
    it from enter. ↑ in an empty box brings back the previous message.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", priority=True),
        Binding("ctrl+n,shift+enter", "new_line", priority=True),
        Binding("up", "previous_message"),
        Binding("pageup", "screen.move('page_up')"),
        Binding("pagedown", "screen.move('page_down')"),
    ]

    class Sent(Message):
        """A request of the user to send the message."""

    class Cut(Message):
        """A report that pasted text was too long and its end was cut."""

    def __init__(self) -> None:
        super().__init__(
            show_line_numbers=False, tab_behavior="focus", highlight_cursor_line=False, placeholder="your message"
        )
        self._before = ""

    def edit(self, edit: Edit) -> EditResult:
        """Insert text up to the maximum length, without control characters."""
        edit.text = typed(edit.text)
        replaced = self.document.get_text_range(*sorted((edit.from_location, edit.to_location)))
        room = LONGEST - len(self.text) + len(replaced)
        if len(edit.text) > room:
            edit.text = edit.text[: max(room, 0)]
            self.post_message(self.Cut())
        return super().edit(edit)

    def take(self) -> str:
        """Empty the box, and return its message without white space at both ends, or "" if there is no message."""
        message = self.text.strip()
        if message:
            self._before = message
            self.load_text("")
        return message

    def action_send(self) -> None:
        """Send the message."""
        self.post_message(self.Sent())

    def action_new_line(self) -> None:
        """Insert a line break."""
        start, end = self.selection
        self.replace("\n", start, end, maintain_selection_offset=False)

    def action_previous_message(self) -> None:
        """Bring back the previous message if the box is empty, else move the cursor up."""
        if self.text or not self._before:
            self.action_cursor_up()
        else:
            self.load_text(self._before)
            self.move_cursor(self.document.end)


class ChatScreen(ModalScreen[Conversation | ForkAsked | None]):
    """The screen of a conversation with the agent `name`.

    Its result is the conversation if the user keeps it as a case, `ForkAsked` if the user forks it, else None. If
    `before` is given, the screen continues that screen's conversation. `note` is a warning above the conversation, or
    "".
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("page_down", "page_up", "next_pane", "back", "keys"),
        *bindings_of("chat"),
    ]

    def __init__(
        self,
        name: str,
        connect: Connect,
        keys: Mapping[str, tuple[str, ...]],
        *,
        note: str = "",
        before: "ChatScreen | None" = None,
    ) -> None:
        super().__init__()
        self._note = note
        self._agent, self._connect, self._keys = name, connect, keys
        self.talk: Conversation = before.talk if before else Conversation(name, {})
        self._link: ChatLink | None = before._link if before else None
        self._batches = Batches(self, self._take_news)
        self._asked_to_stop = False
        self._confirming = ""
        """The action that waits for a second press of its key, or ""."""
        self._view = ConversationView(self.talk)
        self._box = MessageBox()
        self._typing_keys = Static("", classes="field-keys", markup=False)
        self._message = Static("", classes="message", markup=False)
        self._line = KeyLine(footer("chat"), keys)

    def compose(self) -> ComposeResult:
        """Lay out the conversation, the message and the keys."""
        with Vertical(classes="chat") as frame:
            frame.border_title = Content(f"talk to {one_line(self._agent, limit=60)}")
            if self._note:
                yield Static(self._note, classes="message -warning", markup=False)
            yield self._view
            yield self._message
            yield self._box
            yield self._line
            yield self._typing_keys

    def on_mount(self) -> None:
        """Start the conversation, or continue the earlier one."""
        if self._link is None:
            self._begin()
        else:
            self._link.listen(self._batches.wake)
        self._box.focus()
        self._show()

    def leave(self) -> None:
        """End the conversation and its agent process."""
        if self._link is not None:
            self._link.end()

    def _begin(self) -> None:
        self.leave()
        self.talk = Conversation(self._agent, self.talk.initial, prices=self.talk.prices)
        self._asked_to_stop = False
        self._link = self._connect(self.talk.initial, self._batches.wake)

    def _take_news(self) -> int:
        assert self._link is not None
        was_answering, turns = self.talk.doing == "answering", len(self.talk.turns)
        news = self._link.take()
        for event in news:
            self.talk.take(event)
        if news:
            if self.talk.doing != "answering" or len(self.talk.turns) > turns:
                self._asked_to_stop = False
                if was_answering:
                    self._forget_message()
            self._show()
        return 0

    def on_message_box_sent(self) -> None:
        """Send the message to the agent."""
        if self.talk.over:
            self._say("the conversation is over: press esc, then T for a new one", warning=True)
            return
        text = self._box.take()
        if not text:
            return
        assert self._link is not None
        content = {"role": "user", "parts": [{"text": text}]}
        self.talk.waiting.append(content)
        self._link.say(content)
        self._view.turn_page(0)
        self._show()

    def on_message_box_cut(self) -> None:
        """Warn that the pasted text was cut."""
        self._say(f"message cut: the maximum is {LONGEST:,} characters", warning=True)

    def action_enter(self) -> None:
        """Focus the message field."""
        self._box.focus()

    def action_cancel(self) -> None:
        """Cancel the turn. The second call kills the agent."""
        if self.talk.doing != "answering" or self._link is None:
            self._say("the agent is not running a turn")
        elif self._asked_to_stop:
            self._link.kill()
            self._say("killing the agent: the conversation ends", warning=True)
        else:
            self._asked_to_stop = True
            self._link.stop_turn()
            self._say("cancelling the turn: cancel again to kill the agent", warning=True)

    def action_back(self) -> None:
        """Cancel the turn, leave the message field, or close the screen. If turns would be lost, warn first."""
        if self.talk.doing == "answering":
            self.action_cancel()
        elif self._box.has_focus:
            self._view.focus()
        elif self.talk.finished and self._confirming != "leave":
            self._confirming = "leave"
            self._say("conversation not saved: + keeps it as a case, esc again discards it", warning=True)
        else:
            self.leave()
            self.dismiss(None)

    def action_keep_case(self) -> None:
        """Keep the conversation as a case."""
        if not self.talk.finished:
            self._say("nothing to keep yet: no turn has an answer")
        elif self.talk.doing == "answering":
            self._say("the agent is still answering: x cancels the turn")
        else:
            self.dismiss(self.talk)

    def action_fork(self) -> None:
        """Fork the conversation at the turn or call under the cursor."""
        names, turns = self._view.place_names, self.talk.turns
        failed = next((number for number, item in enumerate(turns) if item.error is not None), len(turns))
        if not self.talk.finished:
            self._say("nothing to fork yet: no turn has an answer")
        elif self.talk.doing == "answering":
            self._say("the agent is still answering: x cancels the turn")
        elif failed == 0 or any(f"user/{number}" in names for number in range(failed, len(turns))):
            self._say(f"turn {failed + 1} has no answer: only turns before it can be forked", warning=True)
        else:
            self.dismiss(ForkAsked(names))

    def action_start_again(self) -> None:
        """Start a new conversation. If answered turns would be lost, ask for a second key press."""
        if self.talk.finished and self._confirming != "new":
            self._confirming = "new"
            self._say("conversation not saved: + keeps it as a case, T again discards it", warning=True)
            return
        self._begin()
        self.action_enter()
        self._say("new conversation")

    def action_edit_state(self) -> None:
        """Edit the initial session state, if there is no message yet."""
        if self.talk.turns or self.talk.waiting:
            self._say("the conversation has already started: T starts a new one")
            return
        title = f"initial session state of {one_line(self._agent, limit=40)}"
        self.app.push_screen(StateScreen(title, self.talk.initial), self._take_initial)

    def _take_initial(self, state: dict[str, Any] | None) -> None:
        # As JSON, because Python says that 1 equals true.
        if state is not None and json.dumps(state) != json.dumps(self.talk.initial):
            self.talk.initial = state
            self._begin()
        self.action_enter()

    def action_keys(self) -> None:
        """Show the keys of the conversation."""
        show_keys(self, "chat", self._keys, "keys of the conversation")

    def action_toggle_texts(self) -> None:
        """Show long texts in full, or shorten them again."""
        self._view.toggle_texts()

    def action_move(self, direction: str) -> None:
        """Move in the conversation."""
        self._view.move(direction)

    def action_other_side(self) -> None:
        """Show the next page."""
        self._view.next_page()

    def on_conversation_view_turned(self) -> None:
        """Clear the message after another page was opened."""
        self._forget_message()
        self._show_keys()

    def _show(self) -> None:
        self._view.show(self.talk)
        self._show_keys()

    def _show_keys(self) -> None:
        typing = self._box.has_focus
        first = ("cancel",) if self.talk.doing == "answering" else ("enter", "new_case")
        self._line.show_keys(footer("chat", first), self._keys)
        self._line.display, self._typing_keys.display = not typing, typing
        way = "cancels the turn" if self.talk.doing == "answering" else "more keys"
        self._typing_keys.update(Content(_TYPING.format(way)))

    def _forget_message(self) -> None:
        """Clear the message, and cancel a pending confirmation."""
        self._confirming = ""
        self._say("")

    def on_descendant_focus(self) -> None:
        """Clear the message, and show the keys of the focused widget."""
        self._forget_message()
        self._show_keys()

    def _say(self, text: str, *, warning: bool = False) -> None:
        self._message.set_class(warning, "-warning")
        self._message.update(Content(text))
