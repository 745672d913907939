"""Sections of other packages: text at the end of a pane, and a broken one costs only itself."""

import sys
import threading
from collections.abc import Iterable, Iterator
from itertools import count
from types import ModuleType
from typing import Any

import pytest

from tests.hostile import HOSTILE, leaks
from tests.ui.transcripts import late_parcel
from workbench.files.plugins import ExtensionPoint, listing
from workbench.results import sections
from workbench.results.document import Subject
from workbench.results.lines import View
from workbench.results.panes import PANES, plain_case
from workbench.results.sections import PaneName, Section


class Package:
    """A package with sections, installed for one test."""

    def __init__(self) -> None:
        self.module = ModuleType("a_package_with_sections")
        self.names: list[str] = []

    def add(self, name: str, text: Any, pane: PaneName = "Evidence") -> None:
        setattr(self.module, name, Section(name, pane, f"about {name}", text))
        self.names.append(name)

    def point(self) -> ExtensionPoint[Section]:
        group = "agent_workbench.sections"
        points = [("a-package", group, name, f"{self.module.__name__}:{name}") for name in self.names]
        return ExtensionPoint("sections", Section, lambda: listing(points, {}), {})


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Package:
    made = Package()
    monkeypatch.setitem(sys.modules, made.module.__name__, made.module)
    monkeypatch.setattr(sections, "_made", {})
    monkeypatch.setattr(sections, "_too_slow", {})
    return made


def panes(package: Package, monkeypatch: pytest.MonkeyPatch, width: int = 60, *, full: bool = False) -> dict[str, str]:
    """Return the text of each pane of a case."""
    monkeypatch.setattr(sections, "SECTIONS", package.point())
    found: dict[str, str] = {}
    for pane in PANES:
        lines = pane.build(Subject(late_parcel()), View(width, full)).lines
        assert all(line.cell_len <= width for line in lines)
        found[pane.title] = "\n".join(line.plain for line in lines)
    return found


@pytest.mark.parametrize("pane", [pane.title for pane in PANES])
def test_section_is_at_the_end_of_its_pane(package: Package, monkeypatch: pytest.MonkeyPatch, pane: PaneName) -> None:
    package.add("words", lambda record: [f"{len(record.turns)} turns", "and more"], pane)
    found = panes(package, monkeypatch)
    end = ["─ about words ──────────────".ljust(60, "─"), " 3 turns", " and more"]
    assert found.pop(pane).splitlines()[-3:] == end, "our own sections come before `add_plugin_sections`"
    assert not any("about words" in text for text in found.values())


def test_section_does_not_replace_the_reason_for_an_empty_history(
    package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    package.add("words", lambda record: "a line", "History")
    history = panes(package, monkeypatch)["History"]
    assert "There is no earlier verdict of this case." in history
    assert "a line" in history


def test_section_without_text_is_left_out(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    package.add("nothing", lambda record: "\n")
    assert "about nothing" not in panes(package, monkeypatch)["Evidence"]


def raises(record: object) -> str:
    raise RuntimeError("not today\x1b[2J")


def exits(record: object) -> str:
    sys.exit(3)


def breaks_off(record: object) -> Iterator[str]:
    yield "one"
    raise ValueError("no second line")


def numbers(record: object) -> Iterable[Any]:
    return [1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (raises, "RuntimeError: not today"),
        (exits, "SystemExit: 3"),
        (breaks_off, "ValueError: no second line"),
        (numbers, "TypeError: its text is of type int, not str"),
        (lambda record: None, "TypeError: 'NoneType' object is not iterable"),
    ],
)
def test_broken_section_is_a_named_error_and_the_pane_stays(
    package: Package, monkeypatch: pytest.MonkeyPatch, text: Any, words: str
) -> None:
    package.add("broken", text)
    package.add("good", lambda record: "still here")
    shown = panes(package, monkeypatch, 200)["Evidence"]
    assert f" ! broken (agent_workbench.sections of a-package): {words}" in shown
    assert "still here" in shown
    assert "\x1b" not in shown
    assert "tool_trajectory_avg_score" in shown


def test_slow_section_is_called_only_once(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    go_on = threading.Event()

    def slow(record: object) -> str:
        asked.append(record)
        go_on.wait(60)
        return "late"

    monkeypatch.setattr(sections, "_SECONDS", 0.01)
    package.add("slow", slow)
    try:
        for _ in range(2):
            assert "it takes more than 0 s" in panes(package, monkeypatch, 200)["Evidence"]
    finally:
        go_on.set()
    assert len(asked) == 1


def test_section_is_called_again_only_if_the_case_has_changed(
    package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = count(1)
    package.add("counts", lambda record: f"asked {next(numbers)}")
    monkeypatch.setattr(sections, "SECTIONS", package.point())
    record = late_parcel()
    for width in (60, 80):
        assert "asked 1" in "\n".join(line.plain for line in PANES[0].build(Subject(record), View(width)).lines)
    record.state = "passed"
    assert "asked 2" in "\n".join(line.plain for line in PANES[0].build(Subject(record), View(60)).lines)


def test_long_text_is_folded_and_endless_text_is_cut(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    package.add("endless", lambda record: iter(lambda: "a line", ""))
    assert "more lines" in panes(package, monkeypatch)["Evidence"].splitlines()[-1]
    assert len(panes(package, monkeypatch, full=True)["Evidence"]) < 40_000


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_safe(package: Package, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    package.add("hostile", lambda record: text)
    for width in (24, 60):
        assert not leaks(panes(package, monkeypatch, width)["Evidence"].replace("\n", ""))


def test_printed_text_of_a_section_is_not_shown(
    package: Package, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package.add("loud", lambda record: "said" if sys.stdout.write("to the terminal") else "")
    monkeypatch.setattr(sections, "SECTIONS", package.point())
    assert any(line.strip() == "said" for line in plain_case(late_parcel(), 80))
    assert capsys.readouterr().out == ""
