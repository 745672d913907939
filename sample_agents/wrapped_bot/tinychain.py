"""Stands for a framework of your choice: a bot that keeps its own history and reports its steps through callbacks."""

from collections.abc import Callable
from typing import Any

Tool = Callable[..., Any]


class Bot:
    """Answers questions on opening hours with a tool called `opening_hours`."""

    def __init__(self, tools: dict[str, Tool]) -> None:
        self.tools = tools
        self.history: list[str] = []

    def ask(self, question: str, on_step: Callable[[str, dict[str, Any], Any], None]) -> str:
        """The answer; `on_step(tool, arguments, result)` is called for each tool that was used."""
        self.history.append(question)
        day = next((day for day in ("Saturday", "Sunday") if day.lower() in question.lower()), "weekday")
        arguments = {"day": day}
        hours = self.tools["opening_hours"](**arguments)
        on_step("opening_hours", arguments, hours)
        return f"On a {day} we are open {hours}." if hours else f"On a {day} we are closed."
