"""A small project that was run, and one real edit on disk for each kind of input."""

import venv
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.cli.projects import Project
from workbench.store.inputs import Effect, Input

AGENT = """
import os
from pathlib import Path

from .tools import signature

HERE = Path(__file__).parent


def root_agent(message, session):
    prompt = (HERE / "prompt.txt").read_text().strip()
    notes = len(os.listdir(HERE / "notes"))
    (HERE.parent / "tones" / ("plain" + ".txt")).read_text()
    return f"{prompt} {message}, {notes} {session.state.get('mood', '')} {signature()}"
"""
TOOLS = """
import os


def signature():
    return os.environ.get("DESK_MODE", "")
"""
OTHER = """
def root_agent(message, session):
    return "another desk"
"""
JUDGES = """
def same(question):
    rubrics = question["data"].get("rubrics", ())
    verdicts = [{"id": rubric["id"], "rationale": "scripted", "verdict": "yes"} for rubric in rubrics]
    return {"verdicts": verdicts} if rubrics else {"reasoning": "scripted", "verdict": "valid"}


def user(question):
    heard = [entry for entry in question["data"]["history"] if entry["role"] == "agent"]
    return question["data"]["stop_signal"] if len(heard) > 1 else "and then?"
"""
CONFIG = {
    "criteria": {
        "response_match_score": 0.25,
        "final_response_match_v2": {
            "threshold": 0.5,
            "judge_model_options": {"judge_model": "python:judges:same", "num_samples": 1},
        },
        "rubric_based_final_response_quality_v1": {
            "threshold": 0.5,
            "judge_model_options": {"judge_model": "python:judges:same", "num_samples": 1},
            "rubrics": [{"rubric_id": "polite", "rubric_content": {"text_property": "The answer is polite."}}],
        },
    },
    "user_simulator_config": {"model": "python:judges:user", "max_allowed_invocations": 3},
}
GREETS = {
    "eval_id": "greets",
    "conversation": [
        {
            "user_content": {"role": "user", "parts": [{"text": "hello"}]},
            "final_response": {"role": "model", "parts": [{"text": "kind hello, 1 warm calm"}]},
        }
    ],
    "session_input": {"app_name": "desk", "user_id": "guest", "state": {"mood": "warm"}},
}
SIMULATED = {
    "eval_id": "simulated",
    "conversation_scenario": {"starting_prompt": "hi", "conversation_plan": "Ask twice."},
    "session_input": {"app_name": "desk", "user_id": "guest", "state": {}},
}
CHOSEN = {**GREETS, "eval_id": "chosen"}
EVALSET, CHOSEN_SET, CONFIG_FILE = "evals/talk.evalset.json", "loose/asked.evalset.json", "evals/test_config.json"


def fill(project: Project) -> None:
    """Write an agent that reads files, one of them outside of its folder, lists a folder and looks at its environment,
    a scripted judge and user, and evalsets in other folders that name the agent."""
    venv.create(project.root / ".venv", symlinks=True)
    for path, text in {
        "desk/agent.py": AGENT,
        "desk/tools.py": TOOLS,
        "desk/prompt.txt": "kind",
        "desk/notes/first.txt": "first",
        "desk/.env": "DESK_MODE=calm\n",
        "tones/plain.txt": "plain",
        "judges.py": JUDGES,
    }.items():
        project.write(path, text)
    project.write(CONFIG_FILE, CONFIG)
    project.write(EVALSET, {"eval_set_id": "talk", "eval_cases": [GREETS, SIMULATED]})
    project.write(CHOSEN_SET, {"eval_set_id": "asked", "eval_cases": [CHOSEN]})


@dataclass(frozen=True)
class Edit:
    """A change on disk, the case that depends on it, and how every view names it. `file` None: it is in no file.
    `options` are those that the next run has, too."""

    make: Callable[[Project], object]
    name: str
    file: str | None
    effect: Effect
    case: str = "greets"
    options: tuple[str, ...] = ()


def _replace(path: str, old: str, new: str) -> Callable[[Project], object]:
    def edit(project: Project) -> None:
        text = (project.root / path).read_text(encoding="utf-8")
        assert old in text
        project.write(path, text.replace(old, new))

    return edit


def _write(path: str, text: str) -> Callable[[Project], object]:
    return lambda project: project.write(path, text)


def _install(project: Project) -> None:
    (site,) = (project.root / ".venv/lib").glob("python*/site-packages")
    (site / "something-1.0.dist-info").mkdir()


def _run_in_one_process(project: Project) -> None:
    """Run another case with an option that the older verdicts were made without."""
    project.run("run", CHOSEN_SET, "--isolation", "run")


EDITS: Mapping[Input, Edit] = {
    "agent_file": Edit(_write("desk/prompt.txt", "curt"), "desk/prompt.txt", "desk/prompt.txt", "run"),
    "agent_folder": Edit(_write("desk/extra.py", "X = 1\n"), "desk/extra.py", "desk/extra.py", "run"),
    "environment": Edit(_write("desk/.env", "DESK_MODE=loud\n"), "DESK_MODE", "desk/.env", "run"),
    "packages": Edit(_install, "something 1.0 is new", None, "run"),
    "case": Edit(_replace(EVALSET, '"hello"', '"good day"'), "user messages", EVALSET, "run"),
    "session": Edit(_replace(EVALSET, '"warm"', '"cool"'), "state", EVALSET, "run"),
    "scenario": Edit(_replace(EVALSET, "Ask twice.", "Ask once."), "conversation_plan", EVALSET, "run", "simulated"),
    "simulator": Edit(
        _replace(CONFIG_FILE, '"max_allowed_invocations": 3', '"max_allowed_invocations": 2'),
        *("max_allowed_invocations", CONFIG_FILE, "run", "simulated"),
    ),
    "owner": Edit(_write("loose/agent.py", OTHER), "agent", None, "run", "chosen"),
    "options": Edit(_run_in_one_process, "--isolation", None, "run", options=("--isolation", "run")),
    "expected": Edit(_replace(EVALSET, "1 warm calm", "2 warm calm"), "final_response", EVALSET, "score"),
    "criteria": Edit(
        _replace(CONFIG_FILE, '"response_match_score": 0.25', '"response_match_score": 0.2'),
        *("response_match_score threshold", CONFIG_FILE, "decide"),
    ),
    "judge": Edit(
        _replace(CONFIG_FILE, '"num_samples": 1}}, "rubric', '"num_samples": 3}}, "rubric'),
        *("final_response_match_v2 num_samples", CONFIG_FILE, "score"),
    ),
    "function": Edit(_replace("judges.py", '"scripted"', '"by rote"'), "judges.py", "judges.py", "score"),
}
"""By the kind of input that they change."""
