"""The pytest plugin, which collects eval cases as tests if `--evalsets` is given.

`evalsets = true` in pytest's configuration does the same. pytest loads this module in every run of every project, so it
imports nothing else until evalsets are requested.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from workbench.testing.collected import CollectedCase, CollectedFile, Worker
    from workbench.testing.results import CaseOutcome

_WORKER: pytest.StashKey[Worker] = pytest.StashKey()
_FROZEN = "frozen"
_MODES = (
    ("--frozen", "tools", "answer the agents' calls of tools from the recordings of the cases (agent-workbench)"),
    ("--frozen=tools", "tools", "the same as --frozen"),
    ("--frozen=all", "all", "answer calls of models from the recordings, too"),
    ("--frozen=off", "", "make all calls, whatever the project's setting is"),
)
_NOTES = {
    "judged_by": "judged by a function, not by a language model",
    _FROZEN: "FROZEN, with calls answered from recordings",
}
"""Property of a test → the note in the summary about all tests with that property."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--evalsets`, the options for frozen runs, and the setting `evalsets`."""
    text = "collect the cases of *.test.json, *.evalset.json and agents-cli datasets as tests (agent-workbench)"
    group = parser.getgroup("agent-workbench")
    group.addoption("--evalsets", action="store_true", default=None, help=text)
    # A path may follow, so the value is part of the option's name.
    for name, mode, words in _MODES:
        group.addoption(name, dest=_FROZEN, action="store_const", const=mode, default=None, help=words)
    parser.addini("evalsets", text, type="bool", default=False)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return the collector of an evalset file, or None if evalsets are not enabled or the file is not an evalset."""
    if not file_path.name.endswith(".json") or file_path.name.startswith("."):
        return None
    config = parent.config
    if not (config.getoption("evalsets") or config.getini("evalsets")):
        return None
    from workbench.agents.discovery import is_evalset_file

    if not is_evalset_file(file_path):
        return None
    file: pytest.Collector = EvalsetFile.from_parent(parent, path=file_path)
    return file


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the worker's processes."""
    worker = config.stash.get(_WORKER, None)
    if worker is not None:
        del config.stash[_WORKER]
        worker.close()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how many tests were judged by functions, and how many were replayed from recordings."""
    tests: dict[str, dict[str, Any]] = {}
    for report in (report for found in terminalreporter.stats.values() for report in found):
        tests.setdefault(getattr(report, "nodeid", ""), {}).update(getattr(report, "user_properties", ()))
    for name, words in _NOTES.items():
        number = sum(name in properties for properties in tests.values())
        if number:
            from workbench.text.counting import counted

            terminalreporter.write_line(f"{words}: {counted(number, 'test')}")


class EvalsetFile(pytest.File):
    """An evalset file. Cases in one pytest process share the imported framework and the process that scores."""

    _collected: CollectedFile

    def collect(self) -> Iterable[pytest.Item]:
        """Yield an item per case. A broken file has one item, which ends with an error."""
        from workbench.testing.collected import CollectedFile, CollectionFaultError, frozen_mode

        try:
            self._collected = CollectedFile.read(self.path)
        except CollectionFaultError as fault:
            # A collection error would stop the whole session. A broken file should only cost one test.
            yield BrokenFileItem.from_parent(self, name="(broken file)", message=str(fault))
            return
        mark = f"[{_FROZEN}]" if frozen_mode(self.path, self.config.getoption(_FROZEN)) else ""
        for case in self._collected.cases:
            yield EvalCaseItem.from_parent(self, name=f"{case.name}{mark}", case=case)

    def evaluate(self, case: CollectedCase) -> CaseOutcome:
        """Run the case and score it.

        Raises:
            workbench.testing.evaluation.RefusedError: the case cannot be run.
        """
        from workbench.testing.collected import Worker

        stash = self.config.stash
        if _WORKER not in stash:
            stash[_WORKER] = Worker(self.config.getoption(_FROZEN))
        return stash[_WORKER].evaluate(self._collected, case)


class BrokenFileItem(pytest.Item):
    """A test in place of the cases of a broken file. It ends with an error that lists the faults."""

    def __init__(self, *, message: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._message = message

    def setup(self) -> None:
        """Raise the faults as an error of the test."""
        raise pytest.fail.Exception(self._message, pytrace=False)

    def runtest(self) -> None:
        """Do nothing: the test ends in its setup."""

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the path of the file, its first line, and the name of the item."""
        return self.path, 0, self.name


class EvalCaseItem(pytest.Item):
    """A case as a test.

    The agent runs and is judged in the test's setup. So a broken run is an error of the test, as in the reports. A
    failure is always a failed verdict.
    """

    outcome: CaseOutcome

    def __init__(self, *, case: CollectedCase, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.case = case

    def setup(self) -> None:
        """Run and score the case. Raise its error, or skip the test if it was not evaluated or was cancelled."""
        from workbench.testing.evaluation import RefusedError

        parent = self.parent
        assert isinstance(parent, EvalsetFile)
        try:
            outcome = self.outcome = parent.evaluate(self.case)
        except RefusedError as refused:
            raise pytest.fail.Exception(str(refused), pytrace=False) from None
        for stream, text in outcome.output.items():
            self.add_report_section("setup", stream, text)
        self.user_properties += [(name, score) for name, score in outcome.scores.items() if score is not None]
        if outcome.matched_by == "location":
            self.user_properties.append(("agent", f"{outcome.agent}, matched by location"))
            self.add_report_section("setup", "agent", f"{outcome.agent} was matched by location")
        if outcome.frozen is not None:
            from workbench.results.frozen import frozen_words

            self.user_properties.append((_FROZEN, frozen_words(outcome.frozen)))
        if by_function := outcome.judged_by_function:
            self.user_properties.append(("judged_by", f"function: {', '.join(by_function)}"))
        if outcome.status == "error":
            raise pytest.fail.Exception(outcome.explanation, pytrace=False)
        if outcome.status in ("not_evaluated", "cancelled"):
            raise pytest.skip.Exception(outcome.reason, _use_item_location=True)

    def runtest(self) -> None:
        """Fail with the explanation if the case did not pass."""
        if self.outcome.status != "passed":
            raise pytest.fail.Exception(self.outcome.explanation, pytrace=False)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *arguments: Any) -> Any:
        """Return the failure with its place in the evalset, not in the plugin's code (`--tb=line`)."""
        shown = super().repr_failure(excinfo, *arguments)
        place = getattr(shown, "reprcrash", None)
        if place is not None and isinstance(excinfo.value, pytest.fail.Exception):
            place.path, place.lineno = str(self.path), self.case.line + 1
        return shown

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the path of the file, the line of the case, and the name of the test."""
        return self.path, self.case.line, self.name
