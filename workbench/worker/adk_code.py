"""Interception of code executors, which run code that a model wrote. Each execution passes the gate.

An execution is recorded and replayed like a call of the tool `$code`. ADK has no callback around it. Executors are
synchronous functions, called in a thread or, in google-adk before 2, in the thread of the event loop. So the gate is
passed as by the tools of plain-Python agents (`python_tools`).
"""

from __future__ import annotations

import dataclasses
import functools
from types import SimpleNamespace
from typing import Any

from google.adk.code_executors.base_code_executor import BaseCodeExecutor
from google.adk.code_executors.code_execution_utils import CodeExecutionResult, File

from .adk_gate import current_gate, patch_classes
from .gate import inside
from .jsonable import digest, dumps
from .matching import plain_branch
from .python_tools import Tools

TOOL = "$code"
"""The tool name of executions in recordings. No real tool has it."""

Json = dict[str, Any]


def intercept_code() -> None:
    """Make every class of code executors in this process pass its executions to the gate."""
    patch_classes(BaseCodeExecutor, {"execute_code": _executing}, subclasses_only=True)


def _executing(method: Any) -> Any:
    @functools.wraps(method)
    def execute_code(self: Any, invocation_context: Any, code_execution_input: Any) -> Any:
        gate = None if inside.get() else current_gate(SimpleNamespace(_invocation_context=invocation_context))
        if gate is None:
            return method(self, invocation_context, code_execution_input)
        results: list[Any] = []

        def run(**_: Any) -> Any:
            results.append(method(self, invocation_context, code_execution_input))
            return _data(results[0])

        agent = str(getattr(invocation_context.agent, "name", ""))
        branch = plain_branch(invocation_context.branch)
        tools = Tools(agent, invocation_context.session, branch=branch, waits=False)
        tools.gate = gate.gate
        data = tools.call(TOOL, _arguments(code_execution_input), run)
        return results[0] if results and data == _data(results[0]) else _result(data)

    return execute_code


def _arguments(given: Any) -> Json:
    """Return the inputs of an execution. Files have a digest instead of their content, which may be large."""
    args: Json = {"code": given.code}
    if given.input_files:
        args["files"] = {file.name: digest(dumps(file.content)) for file in given.input_files}
    return args


def _data(result: Any) -> Any:
    """Return ADK's result as a mapping with `stdout` and all fields that are not empty, or another value unchanged."""
    if not dataclasses.is_dataclass(result) or isinstance(result, type):
        return result
    data = {name: value for name, value in dataclasses.asdict(result).items() if value not in (None, "", [])}
    return {"stdout": "", **data}


def _result(data: Any) -> Any:
    """Return ADK's result for recorded data. The data may also be an injected answer of any form."""
    if not isinstance(data, dict):
        return CodeExecutionResult(stdout=data if isinstance(data, str) else dumps(data))
    given = data.get("output_files")
    files = [file if isinstance(file, dict) else {} for file in (given if isinstance(given, list) else ())]
    made = [File(**{"name": "", "content": "", **_known(File, file)}) for file in files]
    return CodeExecutionResult(**{**_known(CodeExecutionResult, data), "output_files": made})


def _known(kind: Any, data: Json) -> Json:
    return {field.name: data[field.name] for field in dataclasses.fields(kind) if field.name in data}
