"""Extensions: ours and those of other packages are listed without imports, and a broken one costs only itself."""

import sys
import textwrap
import threading
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from workbench.files import plugins
from workbench.files.plugins import OWN, BrokenExtensionError, ExtensionPoint, Listing, installed, listing

_NUMBERS = count()


class Thing:
    """The class of extensions in these tests."""

    def __init__(self, name: str) -> None:
        self.name = name


@dataclass(frozen=True)
class Described:
    """An extension with fields."""

    name: str
    needs: tuple[str, ...] = ()


class Plugins:
    """Writes modules of plugins, and makes an extension point that has them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.found: list[tuple[str, str, str, str]] = []
        self.modules: list[str] = []

    def add(self, name: str, source: str, package: str = "a-plugin", attribute: str = "THING") -> str:
        module = f"plugin_of_a_test_{next(_NUMBERS)}"
        text = f"from tests.files.test_plugins import Thing\n{textwrap.dedent(source)}\n"
        (self._folder / f"{module}.py").write_text(text, encoding="utf-8")
        self.found.append((package, "agent_workbench.exporters", name, f"{module}:{attribute}"))
        self.modules.append(module)
        return module

    def point(self) -> ExtensionPoint[Thing]:
        found = listing(self.found, {})
        return ExtensionPoint("exporters", Thing, lambda: found, {})


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plugins]:
    monkeypatch.syspath_prepend(tmp_path)
    made = Plugins(tmp_path)
    yield made
    for module in made.modules:
        sys.modules.pop(module, None)


def test_built_in_extensions_equal_the_entry_points_of_the_package(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = {name: table for name, table in project["entry-points"].items() if name.startswith("agent_workbench.")}
    for point, named in OWN.items():
        missing = dict(named).items() ^ groups.pop(f"agent_workbench.{point}").items()
        assert not missing, f"only in OWN (files/plugins.py) or only in pyproject.toml, {point}: {missing}"
    assert not groups


def test_listing_imports_no_plugin(made: Plugins) -> None:
    module = made.add("good", "THING = Thing('good')")
    point = made.point()
    assert list(point.others()) == ["good"]
    assert module not in sys.modules
    assert point.load("good").name == "good"
    assert point.load("good") is point.load("good")
    assert point.troubles() == []


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import nothing_of_that_name", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("raise RuntimeError", "RuntimeError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("def x(:", "SyntaxError: invalid syntax"),
        ("OTHER = 1", "has no attribute 'THING'"),
        ("THING = 3", "is of type int, not Thing"),
        ("THING = Thing('another')", "has the name 'another'"),
    ],
)
def test_broken_plugin_is_named_with_its_package_and_affects_nothing_else(
    made: Plugins, source: str, said: str
) -> None:
    made.add("bad", source, "bad-plugin")
    made.add("good", "THING = Thing('good')")
    point = made.point()
    assert list(point) == ["good"]
    (trouble,) = point.troubles()
    assert said in trouble.reason
    assert str(trouble).startswith("bad (agent_workbench.exporters of bad-plugin): ")
    assert not trouble.is_usable
    with pytest.raises(BrokenExtensionError, match="bad-plugin"):
        point.load("bad")


def test_entry_point_without_an_attribute_is_named(made: Plugins) -> None:
    made.add("bad", "THING = Thing('bad')", attribute="")
    (trouble,) = made.point().troubles()
    assert "is not of the form module:attribute" in trouble.reason


def test_printing_plugin_is_named_and_its_output_is_dropped(made: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    made.add("loud", "import sys\nprint('hello')\nprint('oh', file=sys.stderr)\nTHING = Thing('loud')")
    point = made.point()
    assert point.load("loud").name == "loud"
    (trouble,) = point.troubles()
    assert "prints while it is imported: 'hello\\noh'" in trouble.reason
    assert trouble.is_usable
    assert capsys.readouterr() == ("", "")
    print("still heard")  # noqa: T201
    assert capsys.readouterr().out == "still heard\n"


def test_slow_plugin_is_skipped(made: Plugins, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_IMPORT_SECONDS", 0.01)
    monkeypatch.setattr(plugins, "waited_for", released := threading.Event(), raising=False)
    streams = sys.stdout, sys.stderr
    made.add("slow", "from workbench.files import plugins\nplugins.waited_for.wait(60)\nTHING = Thing('slow')")
    made.add("good", "THING = Thing('good')")
    point = made.point()
    try:
        with pytest.raises(BrokenExtensionError, match="takes more than"):
            point.load("slow")
    finally:
        released.set()
        sys.stdout, sys.stderr = streams
        monkeypatch.setattr(plugins, "_IMPORT_SECONDS", 60)
    assert list(point) == ["good"]


def test_first_extension_of_a_name_wins_and_built_in_extensions_come_first() -> None:
    group = "agent_workbench.exporters"
    found = listing(
        [("z", group, "pdf", "z:A"), ("b", group, "html", "b:A"), ("a", group, "pdf", "a:A")],
        {"exporters": {"html": "workbench.exporting.html:EXPORTER"}},
    )
    assert [(one.name, one.package) for one in found.extensions] == [("html", "agent-workbench"), ("pdf", "a")]
    assert [str(trouble) for trouble in found.duplicates] == [
        "html (agent_workbench.exporters of b): the name is already taken by agent-workbench",
        "pdf (agent_workbench.exporters of z): the name is already taken by a",
    ]


def test_damaged_metadata_affects_only_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = {
        "good": b"[agent_workbench.exporters]\nx = good:X\n",
        "garbage": b"[agent_workbench.exporters]\n= =\n[[[\nnothing",
        "bytes": b"[agent_workbench.exporters]\n\xff\xfe = y:Y\n",
    }
    for name, content in contents.items():
        info = tmp_path / f"{name}_of_a_test-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-of-a-test\nVersion: 1.0\n")
        (info / "entry_points.txt").write_bytes(content)
    monkeypatch.syspath_prepend(tmp_path)
    found = installed.__wrapped__()
    names = {one.name: one.package for one in found.extensions if not one.is_own}
    assert names["x"] == "good-of-a-test"


def test_unknown_name_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        ExtensionPoint("exporters", Thing, Listing, {}).load("nothing")


def test_failing_extension_is_named(made: Plugins) -> None:
    made.add("bad", "class Bad(Thing):\n    def ask(self): raise RuntimeError('not now')\nTHING = Bad('bad')")
    made.add("good", "class Good(Thing):\n    def ask(self): pass\nTHING = Good('good')")
    found = listing(made.found, {})
    point = ExtensionPoint("exporters", Thing, lambda: found, {}, probe=lambda thing: getattr(thing, "ask")())  # noqa: B009
    (trouble,) = point.troubles()
    assert trouble.extension.name == "bad"
    assert trouble.reason == "it fails when it is called: RuntimeError: not now"


def test_extension_with_a_description_of_a_wrong_type_is_skipped(made: Plugins) -> None:
    made.add("bad", "from tests.files.test_plugins import Described\nTHING = Described('bad', needs=3)")
    found = listing(made.found, {})
    point = ExtensionPoint("exporters", Described, lambda: found, {})
    assert list(point) == []
    assert [trouble.reason for trouble in point.troubles()] == ["its needs: Input should be a valid tuple"]
