"""A live conversation with a user.

A turn can be stopped, a failed turn does not end the chat, and the session's state is reported after each turn.
"""

from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator, Dict, Union

from . import faults
from .case import Case, MissedError, WorkbenchGoneError
from .conversation import FinishedTurn, NotGivenWholeError
from .frames import FrameTooLargeError

"""Maximum size of a state that is reported, in characters of JSON."""


class Chat(Case):
    """A case that receives its messages one by one, possibly with `stop` in between."""

    _stop_requested = False

    async def _messages(self) -> AsyncIterator[Dict[str, Any]]:
        await self._send_state()
        async for content in super()._messages():
            yield content

    async def _turn(self, content: Dict[str, Any]) -> bool:
        """Run one turn, and report the answer or the reason for its absence. The conversation continues either way."""
        number = self._finished_turns
        self._stop_requested = False
        outcome = await self._run_turn(content)
        assert self._opened is not None
        self._send_spans()
        await self._send_state()
        if isinstance(outcome, FinishedTurn):
            try:
                self._send(self._finished(outcome))
                self._finished_turns += 1
                return True
            except FrameTooLargeError as error:
                outcome = faults.fault("too_large", f"the agent's answer has {error}")
        usage = self._opened.conversation.usage.wire()
        self._send({"event": "TurnFailed", "turn": number, "error": outcome, "usage": usage})
        return True

    async def _run_turn(self, content: Dict[str, Any]) -> Union[FinishedTurn, faults.Fault]:
        """Run the turn while watching the socket for a `stop`."""
        turn = asyncio.ensure_future(self._attempt(content))
        try:
            # Let the turn begin first, so that it can report a `stop` that came together with the message.
            await asyncio.sleep(0)
            self._check_stop(turn)
            while not turn.done():
                data = asyncio.ensure_future(self._wire.wait_for_data())
                await asyncio.wait({turn, data}, return_when=asyncio.FIRST_COMPLETED)
                if not data.done():
                    data.cancel()
                    await asyncio.wait({data})
                    continue
                if not self._wire.refill():
                    raise WorkbenchGoneError
                self._check_stop(turn)
        finally:
            turn.cancel()
        return turn.result()

    def _check_stop(self, turn: asyncio.Future[Any]) -> None:
        others = [message for message in self._wire.pending if message["op"] != "stop"]
        if len(others) < len(self._wire.pending) or any(message["op"] == "end" for message in others):
            self._stop_requested = True
            turn.cancel()
        self._wire.pending.clear()
        self._wire.pending.extend(others)

    async def _attempt(self, content: Dict[str, Any]) -> Union[FinishedTurn, faults.Fault]:
        """Run the turn. Return the agent's exceptions as faults."""
        number = self._finished_turns
        assert self._opened is not None
        try:
            turn = self._opened.conversation.turn(
                content,
                lambda acted: self._send({"event": "AgentActed", "turn": number, "acted": acted}),
                lambda author, text, thought: self._send(
                    {"event": "Streamed", "author": author, "text": text, "thought": thought}
                ),
            )
            finished = await self._unless_missed(turn)
        except WorkbenchGoneError:
            raise
        except MissedError as error:
            return error.fault
        except NotGivenWholeError as error:
            return faults.fault("agent_raised", str(error))
        except FrameTooLargeError as error:
            return faults.fault("too_large", f"a step of the agent has {error}")
        except BaseException as error:
            # Anything that an agent raises is its error, even SystemExit.
            if self._stop_requested:
                return faults.fault("cancelled", "stopped before the agent had answered")
            if self._stopped:
                raise
            return faults.agent_fault(error)
        if finished is None:
            return faults.fault("turn_count", "the agent produced no event")
        return finished

    async def _send_state(self) -> None:
        self._send({"event": "State", **await self._state()})
