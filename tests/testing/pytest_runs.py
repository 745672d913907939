"""Runs of pytest on a project, as a user starts it, with xdist as the only other plugin."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.cli.projects import REPOSITORY

_OUTCOME = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED) (.*)$", re.MULTILINE)


def run_pytest(folder: Path, *words: str, plugins: tuple[str, ...] = ("workbench.testing.plugin",)) -> "Done":
    """Run pytest with warnings as errors and without its cache."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", "-rA", "--color=no"]
    for plugin in plugins:
        command += ["-p", plugin]
    environment = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH")))),
        "COLUMNS": "200",
    }
    environment.pop("PYTEST_ADDOPTS", None)
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(
        [*command, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment,
    )
    return Done(done.returncode, done.stdout + done.stderr)


class Done:
    """Exit code and output of a pytest run."""

    def __init__(self, code: int, output: str) -> None:
        self.code = code
        self.output = output

    @property
    def outcomes(self) -> set[tuple[str, str]]:
        """Return (PASSED|FAILED|ERROR, node ID) of each line in the summary."""
        return {(word, rest.split(" - ")[0]) for word, rest in _OUTCOME.findall(self.output) if word != "SKIPPED"}

    @property
    def counts(self) -> Counter[str]:
        return Counter(word for word, _ in _OUTCOME.findall(self.output))
