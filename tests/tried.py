"""A project in a real repository whose agent is flaky in the same way each time, and `try` run on it."""

import json
from pathlib import Path
from typing import Any

from tests.cli.projects import Project, case
from tests.repositories import git

FLAKY = '''
import hashlib, os
from pathlib import Path

HERE = Path(__file__).parent

def count(message):
    """Return how many executions of this variant had this message before."""
    variant = hashlib.md5(repr((HERE, os.environ.get("TONE"))).encode()).hexdigest()
    for number in range(1000):
        try:
            os.close(os.open(f"{os.environ['COUNTS']}/{variant} {message} {number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        return number

def root_agent(message, session):
    """It is right in two of three executions. A clear prompt helps, and a short one hurts."""
    prompt = (HERE / "prompt.md").read_text()
    turn = count(message)
    right = turn % 3 != 1
    if "name the day" in prompt or os.environ.get("TONE") == "clear":
        right = True
    if "be brief" in prompt:
        right = turn % 3 == 0
    return f"You said {message}" if right else "Something else entirely"
'''


class TriedProject(Project):
    """The agent `desk` with twelve cases, committed. `prompt` changes its prompt in the working tree."""

    def __init__(self, root: Path, counts: Path, cases: int = 12) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        counts.mkdir()
        self._counts = counts
        git(root, "init", "-q", "-b", "main")
        self.write("desk/agent.py", FLAKY)
        self.write("desk/prompt.md", "You are kind.")
        self.write("desk/test_config.json", {"criteria": {"response_match_score": 0.8}})
        self.evalset(
            *(case(f"case_{number}", f"order {number}") for number in range(cases)), path="desk/orders.evalset.json"
        )
        self.write(".gitignore", ".workbench\n")
        self.commit()

    def commit(self) -> None:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", "change")

    def prompt(self, text: str) -> None:
        self.write("desk/prompt.md", text)

    def environment(self) -> dict[str, str]:
        """Return the variables for a new try."""
        for file in self._counts.iterdir():
            file.unlink()
        return {"COUNTS": str(self._counts)}

    def tried(self, *words: str) -> tuple[int, dict[str, Any]]:
        """Return exit code and report of `try words --json -`, one case at a time."""
        done = self.run("try", "--concurrency", "1", *words, "--json", "-", environment=self.environment())
        return done.returncode, json.loads(done.stdout)

    def said(self, *words: str) -> tuple[int, str, str]:
        """Return exit code and both outputs of `try words`."""
        done = self.run("try", "--concurrency", "1", *words, environment=self.environment())
        return done.returncode, done.stdout, done.stderr
