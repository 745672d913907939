"""A bare ADK Runner: what it takes for a case is a unit in which costs can be compared between machines.

The goals are in milliseconds, and were set on a machine where that unit is `REFERENCE`. The goals do not change. The
figures in this unit are printed next to them.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks import figures

REFERENCE = 3.55
"""Milliseconds of CPU that a case took the Runner on the machine that the goals were set on."""
BARE = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from desk.agent import root_agent

async def main(cases):
    for number in range(cases):
        sessions = InMemorySessionService()
        session = await sessions.create_session(app_name="desk", user_id="u")
        runner = Runner(app_name="desk", agent=root_agent, session_service=sessions)
        message = types.Content(role="user", parts=[types.Part(text="Where is my parcel?")])
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
            pass
        await runner.close()

asyncio.run(main(int(sys.argv[2])))
"""


def bare(root: Path, cases: int) -> list[str]:
    """Return the command that runs so many cases of the agent in `root`."""
    return [sys.executable, "-c", BARE, str(root), str(cases)]


def case_of(cpu: Callable[[int], float], cases: int) -> float:
    """Return milliseconds for each case: the slope between a tenth of the cases and all of them.

    `cpu` returns the CPU seconds for a number of cases.
    """
    few = cases // 10
    return 1000 * (cpu(cases) - cpu(few)) / (cases - few)


def in_cases(goal_id: str, runner: float, costs: Mapping[str, tuple[float, float | None]]) -> None:
    """Print and record costs in units of cases of a bare Runner, which took so many milliseconds in the same run.

    `costs` maps a name to milliseconds and the goal in milliseconds (None: the goal is not a time).
    """
    told = []
    for name, (cost, goal) in costs.items():
        figures.record(goal_id, f"in cases of a bare Runner: {name}", cost / runner, "cases")
        there = "" if goal is None else f" (the goal is {goal / REFERENCE:.2f} where it was set)"
        told.append(f"{name} {cost / runner:.2f}{there}")
    print(f"    in cases of a bare Runner, {runner:.2f} ms each here: {', '.join(told)}")
