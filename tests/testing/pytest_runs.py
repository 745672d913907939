"""Runs of pytest on a project, as a user starts it, with xdist as the only other plugin."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.cli import projects
from tests.cli.projects import REPOSITORY

_OUTCOME = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED) (.*)$", re.MULTILINE)


def run_pytest(
    folder: Path, *words: str, plugins: tuple[str, ...] = ("workbench.testing.plugin",), fresh: bool = False
) -> "Done":
    """Run pytest with warnings as errors and without its cache. If `fresh`, it has imported nothing before."""
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
    start = subprocess.Popen if fresh else projects.start_program
    with start(
        [*command, *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    return Done(process.returncode, (out + err).decode())


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
