"""Driver files are found without an import, and checked without running them."""

import sys
from pathlib import Path

import pytest

from workbench.agents.workspace.python_source import _usable
from workbench.files.plugins import OWN, Extension, Trouble, module_file
from workbench.worker.drivers import _drivers

GOOD = "import json\ndef recognise(found): ...\nasync def answer(agent, message, session): ...\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that cannot be imported, around the modules that a test writes."""
    package = tmp_path / "package_of_a_test"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    return package


def usable(package: Path, source: str) -> Path | Trouble:
    (package / "driver.py").write_text(source, encoding="utf-8")
    return _usable(Extension("agents", "mine", f"{package.name}.driver", "a-package"))


def test_driver_file_is_found_without_importing_its_package(package: Path) -> None:
    assert usable(package, GOOD) == package / "driver.py"
    assert package.name not in sys.modules
    with pytest.raises(ModuleNotFoundError):
        module_file(f"{package.name}.driver.more")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (GOOD.replace("recognise", "other"), "defines no recognise"),
        ("", "defines no answer and no recognise"),
        (f"import numpy, os\nfrom chain.core import x\n{GOOD}", "imports chain, numpy at its top"),
        (f"from . import sibling\n{GOOD}", "imports . at its top"),
        ("def recognise(:", "SyntaxError"),
    ],
)
def test_unusable_driver_is_named(package: Path, source: str, reason: str) -> None:
    found = usable(package, source)
    assert isinstance(found, Trouble)
    assert reason in found.reason


def test_built_in_drivers_are_listed() -> None:
    assert [driver.name for driver in _drivers()] == [name for name, value in OWN["agents"].items() if ":" in value]
