"""Exceptions become one sentence, the project's own lines, and a hint."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from workbench.worker import faults, missing

PROJECT = """
import json

def chained():
    try:
        inner()
    except KeyError as error:
        raise ValueError("outer") from error

def replaced():
    try:
        inner()
    except KeyError:
        raise ValueError("outer") from None

def during():
    try:
        inner()
    except KeyError:
        raise ValueError("outer")

def inner():
    {}["k"]

def in_library():
    return json.loads("{")

def grouped():
    raise ExceptionGroup("unhandled errors in a TaskGroup", [ExceptionGroup("deeper", [KeyError("k")]), OSError()])

def deep(levels):
    return deep(levels - 1) if levels else inner()

def lines():
    raise ValueError("first\\nsecond")

def endless():
    return endless()
"""


@pytest.fixture
def project(tmp_path: Path) -> ModuleType:
    """A module of a user's project."""
    file = tmp_path / "project.py"
    file.write_text(PROJECT)
    module = ModuleType("project")
    exec(compile(PROJECT, str(file), "exec"), module.__dict__)
    return module


def fault_of(function: Callable[..., Any], *arguments: Any) -> dict[str, str]:
    try:
        function(*arguments)
    except BaseException as error:
        # Without the test's own line above.
        below = error.__traceback__ and error.__traceback__.tb_next
        return faults.agent_fault(error.with_traceback(below))
    raise AssertionError("nothing was raised")


def functions(trace: str) -> list[str]:
    """Return the functions in a traceback, in order."""
    return [line.rpartition(" in ")[2] for line in trace.splitlines() if line.startswith("  File ")]


@pytest.mark.parametrize(
    ("name", "message", "shown"),
    [
        ("inner", "KeyError: 'k'", ["inner"]),
        ("chained", "ValueError: outer (caused by KeyError: 'k')", ["chained", "inner", "chained"]),
        ("replaced", "ValueError: outer", ["replaced"]),
        ("during", "ValueError: outer", ["during", "inner", "during"]),
        ("grouped", "KeyError: 'k'", []),
        ("lines", "ValueError: first\nsecond", ["lines"]),
    ],
)
def test_message_and_traceback_include_the_cause_of_an_exception(
    project: ModuleType, name: str, message: str, shown: list[str]
) -> None:
    fault = fault_of(getattr(project, name))
    assert (fault["kind"], fault["message"], fault["hint"]) == ("agent_raised", message, "")
    assert functions(fault["traceback"]) == shown


def test_lines_of_libraries_are_counted_not_shown(project: ModuleType) -> None:
    fault = fault_of(project.in_library)
    assert fault["message"].startswith("JSONDecodeError: Expecting property name")
    assert functions(fault["traceback"]) == ["in_library", "raw_decode"]
    assert "  … 2 calls inside libraries\n" in fault["traceback"]


def test_innermost_lines_are_shown_if_none_is_in_the_project() -> None:
    fault = fault_of(json.loads, "{")
    assert functions(fault["traceback"])[-3:] == ["loads", "decode", "raw_decode"]


def test_framework_exception_around_an_agents_exception_is_removed(project: ModuleType) -> None:
    async def wrapped() -> None:
        try:
            await asyncio.wait_for(asyncio.sleep(1), 0)
        except TimeoutError as error:
            raise RuntimeError("in the framework") from error

    # This file is not a library, so the outer exception is the project's own and stays.
    assert fault_of(asyncio.run, wrapped())["message"].startswith(
        "RuntimeError: in the framework (caused by TimeoutError"
    )

    namespace: dict[str, Any] = {}
    source = "def run(f):\n try: f()\n except Exception as e: raise RuntimeError('node failed') from e\n"
    exec(compile(source, "/x/site-packages/framework.py", "exec"), namespace)
    assert fault_of(namespace["run"], project.inner)["message"] == "KeyError: 'k'"


def test_very_deep_tracebacks_are_cut(project: ModuleType) -> None:
    assert len(functions(fault_of(project.deep, 200)["traceback"])) == 40
    assert fault_of(project.endless)["message"].startswith("RecursionError: maximum recursion depth exceeded")


def test_long_messages_are_cut() -> None:
    assert faults.fault("agent_raised", "x" * 5000)["message"] == "x" * 2000 + "… [3,000 more characters]"


@pytest.mark.parametrize(
    "make",
    [
        lambda: RuntimeError("session connect " * 2_000_000),
        lambda: RuntimeError("x\n" * 15_000_000),
        lambda: KeyError("k" * 30_000_000),
        lambda: SystemExit("s" * 30_000_000),
        lambda: SyntaxError("s" * 30_000_000, ("agent.py", 1, 2, "t" * 30_000_000)),
        lambda: ExceptionGroup("g" * 30_000_000, [ValueError("v" * 30_000_000)]),
        lambda: type("N" * 30_000_000, (Exception,), {})("named"),
    ],
    ids=["session", "lines", "key", "exit", "syntax", "group", "type"],
)
def test_message_of_30_megabytes_is_cut_quickly_and_fits_a_frame(make: Callable[[], BaseException]) -> None:
    """Patterns with quadratic time would hang here."""
    error = make()
    for fault in (faults.agent_fault(error), faults.import_fault(error)):
        assert sum(map(len, fault.values())) < 200_000


class ClientError(Exception):
    """An error like google-genai's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class RateLimitError(Exception):
    """An error like openai's and anthropic's."""


@pytest.mark.parametrize(
    ("error", "kind", "message", "hint"),
    [
        (ClientError(429, "slow"), "quota", "the model's quota is used up (ClientError: slow)", "--concurrency"),
        (RateLimitError("slow"), "quota", "the model's quota is used up (RateLimitError: slow)", "--concurrency"),
        (ClientError(403, "no"), "agent_raised", "the service refused the credentials (ClientError: no)", "key"),
        (ClientError(400, "API key not valid."), "agent_raised", "the model refused the key", "GOOGLE_API_KEY"),
        (ClientError(400, "bad field"), "agent_raised", "ClientError: bad field", ""),
        (ValueError("No API key was provided."), "agent_raised", "no Gemini key: GOOGLE_API_KEY is not set", ".env"),
        (ValueError("Missing key inputs argument!"), "agent_raised", "no Gemini key", ".env"),
        (
            ConnectionError("Failed to create MCP session: x"),
            "agent_raised",
            "an MCP server could not be reached",
            "log",
        ),
        (ConnectionError("no route"), "agent_raised", "no connection (ConnectionError: no route)", ""),
        (TimeoutError(), "agent_raised", "the agent waited too long for something (TimeoutError)", ""),
        (SystemExit(429), "agent_raised", "the agent called sys.exit(429)", ""),
    ],
)
def test_known_causes_have_hints(error: BaseException, kind: str, message: str, hint: str) -> None:
    fault = faults.agent_fault(error)
    assert fault["kind"] == kind
    assert fault["message"].startswith(message)
    assert hint in fault["hint"]


def test_nested_cause_is_recognised() -> None:
    outer = RuntimeError("it failed")
    outer.__cause__ = ClientError(429, "slow")
    assert faults.agent_fault(outer)["kind"] == "quota"


@pytest.mark.parametrize(
    ("version", "supported"),
    [("1.17.0", False), ("1.18.0", True), ("2.13.0", True), ("2.0.0rc1", True), ("0.5", False)],
)
def test_adk_versions_below_the_oldest_supported_one_are_refused(version: str, supported: bool) -> None:
    assert missing.is_supported(version) is supported


def test_old_framework_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "installed_adk", lambda: "1.2.0")
    monkeypatch.setattr(faults, "PYTHON", "/opt/bin/python")
    error = ImportError("cannot import name 'App' from 'google.adk.apps' (unknown location)")
    fault = faults.import_fault(error)
    assert fault["kind"] == "no_framework"
    assert fault["message"] == "google-adk 1.2.0 in /opt/bin/python is too old: 1.18 is the oldest supported version"
    assert fault["hint"].startswith('uv pip install --python /opt/bin/python "google-adk>=1.18"')


@pytest.mark.parametrize(
    ("missing", "hint"),
    [
        ("json.nope", f"json exists ({json.__file__}) but has no such module"),
        ("nope", "uv pip install --python /opt/bin/python …"),
        ("nope.nope", "uv pip install --python /opt/bin/python …"),
    ],
)
def test_missing_module_of_an_installed_package_gets_no_install_hint(
    monkeypatch: pytest.MonkeyPatch, missing: str, hint: str
) -> None:
    monkeypatch.setattr(faults, "PYTHON", "/opt/bin/python")
    error = ModuleNotFoundError(f"No module named {missing!r}", name=missing)
    assert faults.import_fault(error)["hint"].startswith(hint)
