"""A project whose verdicts are known, and what a run that was ended by force has left behind.

For the drivers that hang up on the workbench or kill its processes: each process is recognised by a mark in its
environment, whatever started it and in any session.
"""

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from benchmarks.parts import marked
from workbench.events.events import CaseFinished, Noticed, RunFinished
from workbench.store.database.database import run_path
from workbench.store.history.run_names import run_ids
from workbench.store.history.stored_events import is_reading_problem, read_run

VARIABLE = "AGENT_WORKBENCH_FORCE_MARK"
AGENT = """
import asyncio, subprocess, sys

async def root_agent(message, session):
    if "starts" in message:
        # In its own session, with a child that is in another one again.
        nested = "import subprocess, time; subprocess.Popen(['sleep', '600'], start_new_session=True); time.sleep(600)"
        subprocess.Popen([sys.executable, "-c", nested], start_new_session=True)
    await asyncio.sleep(0.2)
    yield "the parcel has left" if message.startswith("good") else "no idea"
"""
JUDGE = """
import time

def same(question):
    time.sleep(0.05)
    valid = question["data"]["response"] == question["data"]["reference"]
    return {"reasoning": "compared", "verdict": "valid" if valid else "invalid"}
"""
PYTHON_JUDGE = "python:desk.judges:same"
_HARMLESS = ("cancelled", "crashed", "judge", "metric_crashed")
"""Kinds of errors that a process which was killed may leave behind."""


def criteria(judge: str) -> dict[str, object]:
    """Return criteria that ask a judge once a case, and compute one score."""
    options = {"judge_model": judge, "num_samples": 1}
    return {
        "response_match_score": 0.8,
        "final_response_match_v2": {"threshold": 0.5, "judge_model_options": options},
    }


def write_project(root: Path, cases: int) -> Path:
    """Write a plain agent with so many cases.

    Cases named `good…` pass, those named `bad…` fail, and every fifth starts processes in their own sessions.
    """
    agent = root / "desk"
    agent.mkdir(parents=True)
    (root / ".git").mkdir()  # It marks the root. A state folder that the workbench did not create is not used.
    (agent / "agent.py").write_text(AGENT, encoding="utf-8")
    names = [f"{'bad' if number % 3 == 2 else 'good'}_{number:03}" for number in range(cases)]
    evalset = {
        "eval_set_id": "parcels",
        "eval_cases": [_case(name, starts=index % 5 == 4) for index, name in enumerate(names)],
    }
    (agent / "parcels.evalset.json").write_text(json.dumps(evalset, indent=1), encoding="utf-8")
    (agent / "judges.py").write_text(JUDGE, encoding="utf-8")
    (agent / "__init__.py").write_text("", encoding="utf-8")
    write_criteria(root, criteria(PYTHON_JUDGE))
    return root


def write_criteria(root: Path, wanted: Mapping[str, object]) -> None:
    """Write the config of the project's cases."""
    (root / "desk" / "test_config.json").write_text(json.dumps({"criteria": wanted}), encoding="utf-8")


def _case(name: str, *, starts: bool) -> dict[str, object]:
    text = f"{name} starts" if starts else name
    turn = {
        "user_content": {"role": "user", "parts": [{"text": text}]},
        "final_response": {"role": "model", "parts": [{"text": "the parcel has left"}]},
    }
    return {"eval_id": name, "conversation": [turn]}


def environment(mark: str) -> dict[str, str]:
    """Return this process's environment with the mark, without variables that make terminals differ."""
    values = {**os.environ, VARIABLE: mark, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    for name in ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT", "NO_COLOR", "PYTHONDONTWRITEBYTECODE", "TMUX"):
        values.pop(name, None)
    return values


def until_gone(mark: str, seconds: float) -> tuple[float, list[str]]:
    """Return the seconds until no marked process was left, and the processes left at the time limit."""
    began = time.monotonic()
    while (left := marked(VARIABLE, mark)) and time.monotonic() - began < seconds:
        time.sleep(0.05)
    return time.monotonic() - began, [_described(pid) for pid in left]


def faults_of_runs(state: Path, *harmless: str) -> Iterator[str]:
    """Return the faults of a project's runs: damaged events, and verdicts that are not those of the case.

    `harmless` are more kinds of errors that are no faults.
    """
    for path in _runs(state):
        try:
            events = list(read_run(path))
        except (OSError, ValueError) as error:
            yield f"{path.name}: {error}"
            continue
        yield from (event.message for event in events if isinstance(event, Noticed) and is_reading_problem(event, path))
        for event in events:
            if isinstance(event, CaseFinished) and (wrong := _wrong(event, harmless)):
                yield wrong


def statuses(state: Path) -> Counter[str]:
    """Return how many finished cases of all runs have which status."""
    ends = (event for path in _runs(state) for event in read_run(path) if isinstance(event, CaseFinished))
    return Counter(str(event.status) for event in ends)


def is_finished(state: Path) -> bool:
    """Return whether a run of the project has come to its end."""
    return any(isinstance(event, RunFinished) for path in _runs(state) for event in read_run(path))


def _runs(state: Path) -> list[Path]:
    return [run_path(state, run_id) for run_id in reversed(run_ids(state))]


def remove_state(state: Path) -> None:
    """Remove all runs and answers of a project, so that the next run asks its judges again."""
    shutil.rmtree(state, ignore_errors=True)


def _wrong(event: CaseFinished, harmless: Collection[str]) -> str:
    due = "passed" if event.case.eval_id.startswith("good") else "failed"
    kind = None if event.error is None else event.error.kind
    is_harmless = kind is None or kind in _HARMLESS or kind in harmless
    if event.status == due or (event.status not in ("passed", "failed") and is_harmless):
        return ""
    return f"{event.case.eval_id}: {event.status} instead of {due} ({event.error})"


def _described(pid: int) -> str:
    words = []
    for name in ("cmdline", "wchan", "stat"):
        try:
            words.append(Path(f"/proc/{pid}/{name}").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")[:160])
        except OSError:
            words.append("?")
    return f"{pid}: {words[0]} [{words[1]}] {words[2].rpartition(')')[2].split()[:3]}"
