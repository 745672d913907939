"""A conversation with somebody who types: a turn can be stopped, one that fails ends nothing, and the state of the
session is told after each."""

from __future__ import annotations

import asyncio
import json
from typing import Any, AsyncIterator, Dict, Union

from . import faults
from .case import Case, WorkbenchGoneError
from .conversation import FinishedTurn, NotGivenWholeError
from .frames import FrameTooLargeError
from .jsonable import dumps

STATE_LIMIT = 256 * 1024
"""Characters of JSON that a state may have to be told."""


class Chat(Case):
    """A case whose messages come one by one, with `stop` in between."""

    _stop_asked = False

    async def _messages(self) -> AsyncIterator[Dict[str, Any]]:
        await self._tell_state()
        async for content in super()._messages():
            yield content

    async def _turn(self, content: Dict[str, Any]) -> bool:
        """One message and the answer to it, or why there is none; the conversation goes on after either."""
        number = self._finished_turns
        self._stop_asked = False
        outcome = await self._watched(content)
        assert self._opened is not None
        self._tell_spans()
        await self._tell_state()
        if isinstance(outcome, FinishedTurn):
            try:
                self._send(self._finished(outcome))
                self._finished_turns += 1
                return True
            except FrameTooLargeError as error:
                outcome = faults.fault("too_large", f"the agent's answer has {error}")
        spent = self._opened.conversation.usage.wire()
        self._send({"event": "TurnFailed", "turn": number, "error": outcome, "usage": spent})
        return True

    async def _watched(self, content: Dict[str, Any]) -> Union[FinishedTurn, faults.Fault]:
        """The turn, while the socket is watched for a word to stop it."""
        turn = asyncio.ensure_future(self._guarded(content))
        try:
            # Words that came together with the message; a turn that has not begun cannot tell that it was stopped.
            await asyncio.sleep(0)
            self._take_words(turn)
            while not turn.done():
                word = asyncio.ensure_future(self._wire.arrived())
                await asyncio.wait({turn, word}, return_when=asyncio.FIRST_COMPLETED)
                if not word.done():
                    word.cancel()
                    await asyncio.wait({word})
                    continue
                if not self._wire.refill():
                    raise WorkbenchGoneError
                self._take_words(turn)
        finally:
            turn.cancel()
        return turn.result()

    def _take_words(self, turn: asyncio.Future[Any]) -> None:
        kept = [message for message in self._wire.pending if message["op"] != "stop"]
        if len(kept) < len(self._wire.pending) or any(message["op"] == "end" for message in kept):
            self._stop_asked = True
            turn.cancel()
        self._wire.pending.clear()
        self._wire.pending.extend(kept)

    async def _guarded(self, content: Dict[str, Any]) -> Union[FinishedTurn, faults.Fault]:
        """Never raises what the agent raises."""
        number = self._finished_turns
        assert self._opened is not None
        try:
            finished = await self._opened.conversation.turn(
                content,
                lambda acted: self._send({"event": "AgentActed", "turn": number, "acted": acted}),
                lambda author, text, thought: self._send(
                    {"event": "Streamed", "author": author, "text": text, "thought": thought}
                ),
            )
        except WorkbenchGoneError:
            raise
        except NotGivenWholeError as error:
            return faults.fault("agent_raised", str(error))
        except FrameTooLargeError as error:
            return faults.fault("too_large", f"a step of the agent has {error}")
        except BaseException as error:
            # What an agent raises is its own affair, SystemExit included.
            if self._stop_asked:
                return faults.fault("cancelled", "stopped before the agent had answered")
            if self._stopped:
                raise
            return faults.of_agent(error)
        if finished is None:
            return faults.fault("turn_count", "the agent did nothing, not a single event")
        return finished

    async def _tell_state(self) -> None:
        """What the session remembers now. That it cannot be told must not cost the turn."""
        assert self._opened is not None
        try:
            text = dumps(await self._opened.conversation.state())
        except Exception as error:
            self._send({"event": "State", "state": None, "why": faults.sentence(error)})
            return
        if len(text) > STATE_LIMIT:
            why = f"the state is {len(text):,} characters of JSON: too much to be shown here"
            self._send({"event": "State", "state": None, "why": why})
        else:
            self._send({"event": "State", "state": json.loads(text), "why": ""})
