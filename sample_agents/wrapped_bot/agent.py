"""The ten lines that make any framework's agent one that the workbench can evaluate."""

from .tinychain import Bot

HOURS = {"weekday": "from 9 to 18", "Saturday": "from 10 to 14", "Sunday": ""}


def opening_hours(day):
    return HOURS[day]


def root_agent(message, session):
    def look_up(**args):
        return session.tool("opening_hours", args, opening_hours)

    bot = session.state.setdefault("bot", Bot({"opening_hours": look_up}))
    steps = []
    answer = bot.ask(message, on_step=lambda *step: steps.append(step))
    for tool, arguments, result in steps:
        yield {"tool_call": {"name": tool, "args": arguments}}
        yield {"tool_response": {"name": tool, "response": {"result": result}}}
    yield answer
