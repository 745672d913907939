"""Talking to an agent: what was said and done above, the message being typed below."""

import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Static

from workbench.actions import footer
from workbench.rendering.cells import cell_len
from workbench.text import one_line
from workbench.ui.chat.link import ChatLink
from workbench.ui.chat.message_box import LONGEST, MessageBox
from workbench.ui.chat.state_screen import StateScreen
from workbench.ui.chat.talk import Talk
from workbench.ui.chat.talk_view import TalkView
from workbench.ui.dialogs.key_help import show_keys
from workbench.ui.keys import bindings, bindings_of
from workbench.ui.pace import Pace
from workbench.ui.widgets.footer import KeyLine

Connect = Callable[[dict[str, Any], Callable[[], None]], ChatLink]
"""Begins a conversation whose session has this state; the function is called, from another thread, at news."""
_FRAME = 2
"""Columns of the frame around it."""
_TOGETHER = 0.03
"""Seconds in which what comes is shown together."""
_TYPING = ("enter sends", "esc {}", "ctrl+n new line", "tab pages", "pgup pgdn")
"""The most needed first: a narrow screen has not room for all."""


class ChatScreen(ModalScreen[Talk | None]):
    """A conversation with the agent `name`. Ends with it where it is to be kept as a case, with None where it was
    left. With `talk` it goes on with one that was begun before (`link` is its other end).
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("page_down", "page_up", "next_pane", "back", "keys"),
        *bindings_of("chat"),
    ]

    class NewsCame(Message):
        """There is something to take in."""

    def __init__(
        self,
        name: str,
        connect: Connect,
        keys: Mapping[str, tuple[str, ...]],
        *,
        before: "ChatScreen | None" = None,
    ) -> None:
        super().__init__()
        self._agent, self._connect, self._keys = name, connect, keys
        self.talk: Talk = before.talk if before else Talk(name, {})
        self._link: ChatLink | None = before._link if before else None
        self._pace = Pace()
        self._due: Timer | None = None
        self._asked_to_stop = False
        self._sure = ""
        """What was asked for once, and is done when it is asked for again."""
        self._view = TalkView(self.talk)
        self._box = MessageBox()
        self._typing_keys = Static("", classes="field-keys", markup=False)
        self._message = Static("", classes="message", markup=False)
        self._line = KeyLine(footer("chat"), keys)

    def compose(self) -> ComposeResult:
        with Vertical(classes="chat") as frame:
            frame.border_title = Content(f"talk to {one_line(self._agent, limit=60)}")
            yield self._view
            yield self._message
            yield self._box
            yield self._line
            yield self._typing_keys

    def on_mount(self) -> None:
        if self._link is None:
            self._begin()
        else:
            self._link.listen(self._wake)
        self._box.focus()
        self._show()

    def leave(self) -> None:
        """The conversation will not go on: lets go of the agent."""
        if self._link is not None:
            self._link.end()

    # What happens

    def _begin(self) -> None:
        self.leave()
        self.talk = Talk(self._agent, self.talk.initial, prices=self.talk.prices)
        self._asked_to_stop = False
        self._link = self._connect(self.talk.initial, self._wake)

    def _wake(self) -> None:
        self.post_message(self.NewsCame())

    def on_chat_screen_news_came(self) -> None:
        if self._due is None:
            self._due = self.set_timer(max(_TOGETHER, self._pace.wait(time.monotonic())), self._take_news)

    def _take_news(self) -> None:
        self._due = None
        assert self._link is not None
        was_answering = self.talk.doing == "answering"
        news = self._link.take()
        for event in news:
            self.talk.take(event)
        if news:
            if self.talk.doing != "answering":
                self._asked_to_stop = False
                if was_answering:
                    self._forget_message()
            self._show()
            self._pace.painted(time.monotonic(), 0)

    # The message

    def on_message_box_sent(self) -> None:
        if self.talk.over:
            self._say("the conversation is over: esc, then r begins a new one", warning=True)
            return
        text = self._box.take()
        if not text:
            return
        assert self._link is not None
        content = {"role": "user", "parts": [{"text": text}]}
        self.talk.waiting.append(content)
        self._link.say(content)
        self._view.turn_page(0)

    def on_message_box_cut(self) -> None:
        self._say(f"a message has {LONGEST:,} characters at most: the end of this one is missing", warning=True)

    def action_chat_write(self) -> None:
        self._box.focus()

    def action_chat_stop(self) -> None:
        if self.talk.doing != "answering" or self._link is None:
            self._say("the agent is not at work")
        elif self._asked_to_stop:
            self._link.kill()
            self._say("killing the agent: the conversation ends here", warning=True)
        else:
            self._asked_to_stop = True
            self._link.stop_turn()
            self._say("stopping the turn; once more kills the agent", warning=True)

    def action_back(self) -> None:
        if self.talk.doing == "answering":
            self.action_chat_stop()
        elif self._box.has_focus:
            self._view.focus()
        elif self.talk.finished and self._sure != "leave":
            self._sure = "leave"
            self._say("not kept: + keeps it as a case, esc once more drops it", warning=True)
        else:
            self.leave()
            self.dismiss(None)

    # The conversation

    def action_chat_keep(self) -> None:
        if not self.talk.finished:
            self._say("there is no answered turn to keep yet")
        elif self.talk.doing == "answering":
            self._say("the agent is still answering: x stops it")
        else:
            self.dismiss(self.talk)

    def action_chat_anew(self) -> None:
        if self.talk.finished and self._sure != "anew":
            self._sure = "anew"
            self._say("not kept: + keeps it as a case, r once more begins anew", warning=True)
            return
        self._begin()
        self.action_chat_write()
        self._say("a new conversation")

    def action_chat_initial(self) -> None:
        if self.talk.turns or self.talk.waiting:
            self._say("it has begun already: r begins anew, and then there is a choice")
            return
        title = f"the state that the session with {one_line(self._agent, limit=40)} begins with"
        self.app.push_screen(StateScreen(title, self.talk.initial), self._take_initial)

    def _take_initial(self, state: dict[str, Any] | None) -> None:
        if state is not None and state != self.talk.initial:
            self.talk.initial = state
            self._begin()
        self.action_chat_write()

    def action_keys(self) -> None:
        show_keys(self, "chat", self._keys, "keys of the conversation")

    # What is shown

    def action_chat_full(self) -> None:
        self._view.toggle_texts()

    def action_move(self, direction: str) -> None:
        self._view.move(direction)

    def action_other_side(self) -> None:
        self._view.next_page()

    def on_talk_view_turned(self) -> None:
        self._forget_message()
        self._show_keys()

    def _show(self) -> None:
        self._view.show(self.talk)
        self._show_keys()

    def _show_keys(self) -> None:
        """Show the keys that work where the user is."""
        typing = self._box.has_focus
        self._line.display, self._typing_keys.display = not typing, typing
        way = "stops the turn" if self.talk.doing == "answering" else "the other keys"
        line = " " + _TYPING[0]
        for key in _TYPING[1:]:
            longer = f"{line} · {key.format(way)}"
            line = longer if cell_len(longer) <= self.size.width - _FRAME else line
        self._typing_keys.update(Content(line))

    def _forget_message(self) -> None:
        """Remove the message at the foot, and the question that it asked."""
        self._sure = ""
        self._say("")

    def on_resize(self) -> None:
        self._show_keys()

    def on_descendant_focus(self) -> None:
        self._forget_message()
        self._show_keys()

    def _say(self, text: str, *, warning: bool = False) -> None:
        self._message.set_class(warning, "-warning")
        self._message.update(Content(text))
