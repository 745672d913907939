"""Declarations of tools and digests of their source."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from workbench.worker import declared
from workbench.worker.declared import no_longer_fits, signature_declaration, source_digest

THEN: dict[str, Any] = {
    "parameters_json_schema": {
        "type": "object",
        "properties": {"order": {"type": "string"}, "amount": {"type": "number"}},
        "required": ["order"],
    }
}
ARGS = {"order": "A-18", "amount": 12.5}


def changed(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    """Return the declaration with other parameters. None removes one."""
    schema = THEN["parameters_json_schema"]
    known = {name: kind for name, kind in {**schema["properties"], **properties}.items() if kind is not None}
    return {"parameters_json_schema": {**schema, "properties": known, "required": required or ["order"]}}


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (changed(description={"type": "string"}), ""),
        (changed(["order", "reason"], reason={"type": "string"}), "`reason` is required"),
        (changed(amount=None), "`amount` is not a parameter"),
        (changed(amount={"type": "string"}), "`amount` has another type"),
        (changed(amount={"type": "integer"}), "`amount` has another type"),
        (changed(amount={"anyOf": [{"type": "null"}, {"type": "number"}]}), ""),
        (changed(order={"enum": ["A-1", "A-2"]}), "`order` has another type"),
        (changed(order={"$ref": "#/$defs/Unknown"}), ""),
        (
            {"parameters": {"type": "OBJECT", "properties": {"order": {"type": "STRING"}}}},
            "`amount` is not a parameter",
        ),
        ({"name": "refund"}, "`order` is not a parameter, `amount` is not a parameter"),
        (None, ""),
        ({"parameters": "damaged"}, ""),
    ],
)
def test_misfit_of_a_recorded_call_is_explained(now: Any, why: str) -> None:
    assert no_longer_fits(THEN, now, ARGS) == why


def test_argument_that_was_already_wrong_when_recorded_still_fits() -> None:
    now = changed(amount={"type": "string"}, reason={"type": "string"})
    assert no_longer_fits(changed(amount={"type": "boolean"}), now, ARGS) == ""
    assert no_longer_fits(None, now, ARGS) == ""


def test_signature_of_a_plain_function_is_its_declaration() -> None:
    def refund(order: str, amount: "float", note: Any = None, days: int = 3, *rest: int, **more: str) -> None: ...

    assert signature_declaration("pay", refund) == {
        "name": "pay",
        "parameters_json_schema": {
            "type": "object",
            "properties": {
                "order": {"type": "string"},
                "amount": {"type": "number"},
                "note": {"default": None},
                "days": {"type": "integer", "default": 3},
            },
            "required": ["order", "amount"],
            "additionalProperties": True,
        },
    }
    assert signature_declaration("type", type) is None


AGENT = {
    "desk_of_tests/__init__.py": "",
    "desk_of_tests/rates.py": "from .more import TAX\n\ndef rate():\n    return TAX\n\ndef other():\n    return 1\n",
    "desk_of_tests/more.py": "TAX = 2\nUNUSED = 3\nPRICES = []\n",
    "desk_of_tests/agent.py": (
        "import functools\n\nfrom . import more\nfrom .more import PRICES\nfrom .rates import rate\n\f\nFEE = 1\n\n\n"
        "def refund(amount):\n    return helper(amount)\n\n\n"
        "def helper(amount):\n    return amount * rate() + FEE\n\n\n"
        "def dotted():\n    return more.UNUSED\n\n\n"
        "class Desk:\n    def find(self):\n        return FEE\n\n\n"
        "TABLE = {}\nTABLE['a'] = 1\nPRICES.append(5)\n\n\ndef filled():\n    return TABLE, PRICES\n\n\n"
        "short = lambda amount: amount\nbound = Desk().find\npart = functools.partial(refund, 1)\n"
    ),
}


@pytest.fixture
def digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a function that changes the agent's files and returns the digests of its tools."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def read(**changes: tuple[str, str]) -> dict[str, str]:
        for file, text in AGENT.items():
            old, new = changes.get(Path(file).stem, ("", ""))
            (tmp_path / file).parent.mkdir(exist_ok=True)
            (tmp_path / file).write_text(text.replace(old, new) if old else text)
        forget()
        agent = importlib.import_module("desk_of_tests.agent")
        return {
            name: source_digest(getattr(agent, name))
            for name in ("refund", "dotted", "bound", "short", "part", "filled")
        }

    def forget() -> None:
        importlib.invalidate_caches()
        for name in [name for name in sys.modules if name.startswith("desk_of_tests")]:
            del sys.modules[name]
        for cached in (declared._digest, declared._imported, declared._statements):
            cached.cache_clear()

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield read
    forget()


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, set()),
        ({"agent": ("helper(amount)\n\n\n", "2 * helper(amount)\n\n\n")}, {"refund", "part"}),
        ({"agent": ("FEE = 1", "FEE = 2")}, {"refund", "part", "bound"}),
        ({"rates": ("return TAX", "return TAX + 1")}, {"refund", "part"}),
        ({"rates": ("return 1", "return 2")}, set()),
        ({"more": ("TAX = 2", "TAX = 3")}, {"refund", "part"}),
        ({"more": ("UNUSED = 3", "UNUSED = 4")}, {"dotted"}),
        ({"agent": ("TABLE['a'] = 1", "TABLE['a'] = 9")}, {"filled"}),
        ({"agent": ("append(5)", "append(6)")}, {"filled"}),
        ({"more": ("PRICES = []", "PRICES = [1]")}, {"filled"}),
        ({"agent": ("lambda amount: amount", "lambda amount: 2")}, {"short"}),
        ({"agent": ("import functools\n", "import functools\n\n# moved\n")}, set()),
    ],
)
def test_digest_changes_with_all_code_that_the_tool_names(
    changes: dict[str, tuple[str, str]], names: set[str], digests: Any
) -> None:
    before, after = digests(), digests(**changes)
    assert all(before.values())
    assert {name for name in before if before[name] != after[name]} == names


def test_code_outside_of_the_project_has_no_digest() -> None:
    assert source_digest(Path.exists) == source_digest(len) == source_digest(object()) == ""
