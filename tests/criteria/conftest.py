"""Fixtures that build turns."""

from collections.abc import Callable
from typing import Any

import pytest

Turn = dict[str, Any]


@pytest.fixture
def turn() -> Callable[..., Turn]:
    """`turn(("find", {"id": 1}), "pay", text="Done")`: calls are names or (name, args)."""

    def make(*calls: str | tuple[str, Any], text: str | None = None) -> Turn:
        uses = [{"name": call} if isinstance(call, str) else {"name": call[0], "args": call[1]} for call in calls]
        made: Turn = {"user_content": {"parts": [{"text": "hello"}]}, "intermediate_data": {"tool_uses": uses}}
        return made if text is None else {**made, "final_response": {"parts": [{"text": text}]}}

    return make
