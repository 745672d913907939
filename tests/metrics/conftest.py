"""Turns made from little."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

# The first example pays for imports and the machine may be busy: time is not what these properties are about.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

Turn = dict[str, Any]


@pytest.fixture
def turn() -> Callable[..., Turn]:
    """`turn(("find", {"id": 1}), "pay", text="Done")`: calls are names or (name, args)."""

    def make(*calls: str | tuple[str, Any], text: str | None = None) -> Turn:
        uses = [{"name": call} if isinstance(call, str) else {"name": call[0], "args": call[1]} for call in calls]
        made: Turn = {"user_content": {"parts": [{"text": "hello"}]}, "intermediate_data": {"tool_uses": uses}}
        return made if text is None else {**made, "final_response": {"parts": [{"text": text}]}}

    return make
