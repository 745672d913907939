"""Selection of the parity suite's vectors, and its summary.

`PARITY_VECTORS=DIR` runs the JSON files of another folder instead of our own. The last lines of the output are

    parity METRIC: N equal, N differ as documented, N wrong
    parity quirk NAME: N equal, N differ as documented, N wrong

With pytest-xdist the controller prints them, if the suite is named on its command line.
"""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from workbench.criteria.registry import descriptions

OUTCOMES = ("equal", "differ as documented", "wrong")
_PROPERTY = "parity"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "vector" not in metafunc.fixturenames:
        return
    by_metric: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for vector in _read_vectors():
        by_metric[vector["metric"]].append(vector)
    parameters = []
    for metric, vectors in by_metric.items():
        info = descriptions().get(metric)
        if info is None or not info.supported:
            reason = f"{metric} is not supported yet ({len(vectors)} vectors)"
            parameters.append(pytest.param(vectors[0], id=metric, marks=pytest.mark.skip(reason=reason)))
        else:
            parameters += [pytest.param(vector, id=f"{metric}-{vector['id']}") for vector in vectors]
    metafunc.parametrize("vector", parameters)


def _read_vectors() -> Iterable[dict[str, Any]]:
    folder = Path(os.environ.get("PARITY_VECTORS") or Path(__file__).parent / "vectors")
    files = sorted(folder.glob("*.json"))
    if not files:
        raise pytest.UsageError(f"no parity vectors (*.json) in {folder}")
    for file in files:
        yield from json.loads(file.read_text(encoding="utf-8"))


@pytest.fixture
def outcome(request: pytest.FixtureRequest, vector: dict[str, Any]) -> dict[str, Any]:
    """Return the entry for the test's outcome, which is "wrong" until the test changes it."""
    entry = {"metric": vector["metric"], "quirks": vector.get("quirks") or [], "outcome": "wrong"}
    request.node.user_properties.append((_PROPERTY, entry))
    return entry


class _Tally:
    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, entry in report.user_properties:
            if name == _PROPERTY and report.when == "call":
                assert isinstance(entry, dict)
                for line in (entry["metric"], *(f"quirk {quirk}" for quirk in entry["quirks"])):
                    self.counts[line][entry["outcome"]] += 1
        if report.skipped and "is not supported yet (" in str(report.longrepr):
            self.skipped.append(str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr))

    def pytest_unconfigure(self) -> None:
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if terminal is None or not (self.counts or self.skipped):
            return
        for reason in sorted(self.skipped):
            terminal.write_line(f"parity {reason.removeprefix('Skipped: ')}")
        for line in sorted(self.counts, key=lambda name: (name.startswith("quirk "), name)):
            counts = ", ".join(f"{self.counts[line][outcome]} {outcome}" for outcome in OUTCOMES)
            terminal.write_line(f"parity {line}: {counts}")


def pytest_configure(config: pytest.Config) -> None:
    # A worker of pytest-xdist only reports to its controller, which does the counting.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Tally(config))
