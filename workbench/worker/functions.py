"""The user's own functions (judges and metrics), called in the agent's interpreter by their dotted path.

A path is `package.module.function` or `package.module:function`. It is imported as Python imports modules. The parent
of the agent's folder is first on `sys.path`. The root and the agent's own folder are last, where they shadow no other
modules. As under `adk eval`, the agent's package is also available under the name `agent`.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import importlib
import inspect
import math
import os
import sys
import threading
import traceback
import types
from collections.abc import Callable
from typing import Any, NoReturn

from . import faults, jsonable, project_files, serving
from .drivers import extend_path
from .missing import installed_adk, package_command
from .serving import route_output, use_output

_STATE = "final_session_state"
"""The parameter with which a metric asks for the session state at the end."""
_AGENT = "agent"
"""The name under which `adk eval` imports an agent's package."""

_MOST_PRINTED = 4000
"""Characters of a call's output that are kept."""
Stamp = tuple[int, int]


def serve_functions(control: int, lifeline: int, folder: str, root: str) -> NoReturn:
    """Answer calls until the other side disconnects, then end the process."""
    sys.argv = ["agent-workbench"]
    route_output()
    project_files.import_from_source(folder, root)
    extend_path(folder, root)
    if folder not in sys.path:
        sys.path.append(folder)
    serving.serve(control, lifeline, UserFunctions(folder, root).answer)


class UserFunctions:
    """The functions of the agent in `folder`. Their modules are imported once and never reloaded."""

    def __init__(self, folder: str, root: str) -> None:
        self._folder = folder
        self._root = root
        self._seen: dict[str, Stamp | None] = {}
        self._evaluates: dict[tuple[str, str], Any] = {}

    async def answer(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Answer `{"kind", "path", "data"}` with `{"value", "printed"}`.

        `value` is the function's result as JSON data, `printed` the end of its output.

        Raises:
            CallFailedError: the call failed. `error` has the fields of a fault, and usually `printed`. Its kind is
                `stale` if a module changed since its import.
        """
        if any(_stamp(file) != stamp for file, stamp in self._seen.items()):
            raise _failed("stale", "a module changed after it was imported")
        printed = ""

        def keep(stream: str, text: str) -> bool:
            nonlocal printed
            printed = (printed + text)[-_MOST_PRINTED:]
            return True

        use_output(keep)
        try:
            if payload["kind"] == "evaluate":
                function = self._evaluate(payload["path"], payload["data"])
            else:
                function = self.find(payload["path"])
            value = await _called(function, payload)
        except serving.CallFailedError as error:
            error.error["printed"] = printed
            raise
        finally:
            # Remember each of the project's modules as it was when it was first imported.
            for module in list(sys.modules.values()):
                file = getattr(module, "__file__", None)
                if isinstance(file, str) and file not in self._seen and project_files.is_project_file(file):
                    self._seen[file] = _stamp(file)
        return {"value": value, "printed": printed}

    def find(self, path: str) -> Callable[..., Any]:
        """Return the function with this dotted path. Raise CallFailedError if there is none or its import fails."""
        module_name, colon, name = path.partition(":")
        if not colon:
            module_name, _, name = path.rpartition(".")
        if not module_name or not name:
            unnamed = path or "an empty name"
            raise _failed("import_failed", f"{unnamed} does not name a function; use package.module.function")
        try:
            found = self._attribute(module_name, name)
        except serving.CallFailedError:
            raise
        except BaseException as error:
            # Importing runs the user's code, which may even call sys.exit.
            raise serving.CallFailedError(_of_import(error, path)) from None
        if not callable(found):
            raise _failed("import_failed", f"{path} is {type(found).__name__}, not a function")
        function: Callable[..., Any] = found
        return function

    def _evaluate(self, path: str, data: dict[str, Any]) -> Callable[..., Any]:
        """Return the function `evaluate` of a metric of agents-cli. Its source runs in an empty namespace.

        Raises:
            CallFailedError: the source cannot be read or run, or has no such function.
        """
        file = os.path.join(self._root, data["file"]) if data["file"] else f"<{path}>"
        source = data["source"]
        try:
            if data["file"]:
                with open(file, encoding="utf-8") as opened:
                    source = opened.read()
            key = file, source
            if key not in self._evaluates:
                names: dict[str, Any] = {}
                exec(compile(source, file, "exec"), names)
                self._evaluates[key] = names.get("evaluate")
        except BaseException as error:
            raise serving.CallFailedError(_with_line(_of_import(error, path), error, file)) from None
        function = self._evaluates[key]
        if not callable(function):
            raise _failed("import_failed", f"{path} does not define evaluate(instance)")

        def evaluate(instance: Any) -> Any:
            try:
                return function(instance)
            except Exception as error:
                message = f"{path} raised {faults.sentence(error)}"
                fault = faults.fault("raised", message, "", faults.project_traceback(error))
                raise serving.CallFailedError(_with_line(fault, error, file)) from None

        return evaluate

    def _attribute(self, module_name: str, name: str) -> Any:
        """Return the attribute `name` of the first candidate module that has it.

        Raises:
            CallFailedError: no module has the attribute.
            ImportError: a module that the candidate imports is missing.
        """
        if module_name.partition(".")[0] == _AGENT and _AGENT not in sys.modules:
            project_files.import_package(_AGENT, self._folder)
        problem: faults.Fault | None = None
        # A module of the agent's folder may be named without its package. As a part of the package, it can import its
        # neighbours.
        for candidate in (module_name, f"{os.path.basename(self._folder)}.{module_name}"):
            try:
                value: Any = importlib.import_module(candidate)
                for part in name.split("."):
                    value = getattr(value, part)
            except AttributeError:
                problem = faults.fault("import_failed", f"module {candidate} has no function {name}")
                if module_name != _AGENT:
                    break
            except ImportError as error:
                # The requested module is missing, or a package above it, or it has relative imports and no package.
                # Otherwise, a module that it imports is missing.
                missing = getattr(error, "name", None)
                is_part = missing is not None and f"{candidate}.".startswith(f"{missing}.")
                if not is_part and "no known parent package" not in str(error):
                    raise
                places = ", ".join(dict.fromkeys((os.path.dirname(self._folder), self._root, self._folder)))
                hint = f"searched in {places} and in the packages of {faults.PYTHON}"
                problem = problem or faults.fault("import_failed", f"there is no module {module_name}", hint)
            else:
                return value
        assert problem is not None
        raise serving.CallFailedError(problem)


async def _called(function: Callable[..., Any], payload: dict[str, Any]) -> Any:
    """Return the function's result as JSON data. Raise CallFailedError if it fails or its result is not usable."""
    data = payload["data"]
    if payload["kind"] == "metric":
        if installed_adk() is None or faults.too_old():
            raise serving.CallFailedError(faults.no_framework())
        adk_metric = _adk_metric()
        arguments = adk_metric.arguments(data, payload["path"])
        if _takes(function, _STATE):
            function = functools.partial(function, **{_STATE: data.get("end_state")})
        return adk_metric.plain(await _result(function, arguments), payload["path"])
    if payload["kind"] == "evaluate":
        return _rated(await _result(function, (data["instance"],)), payload["path"])
    value = await _result(function, (data,))
    if value is None:
        raise _failed("wrong_result", f"{payload['path']} returned None instead of an answer")
    return value if isinstance(value, str) else jsonable.simplified(value)


def _rated(result: Any, path: str) -> dict[str, Any]:
    """Return the result of a metric of agents-cli as `{"score", "explanation"}`.

    The result may be a number, a dict, or an object with `metric_name` and `score`, such as agents-cli's own.

    Raises:
        CallFailedError: the result has no finite score.
    """
    score, why = (result if isinstance(result, (int, float)) else None), None
    if isinstance(result, dict):
        score, why = result.get("score"), result.get("explanation")
    elif hasattr(result, "metric_name") and hasattr(result, "score"):
        score, why = result.score, getattr(result, "explanation", None) or getattr(result, "error_message", None)
    try:
        number = float(score if score is not None else math.nan)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        shown = f"{type(result).__name__} {jsonable.shown(result)[:200]}"
        hint = "return a number, or a dict with `score` and `explanation`"
        raise _failed("wrong_result", f"{path} returned {shown}, which has no score", hint)
    return {"score": number, "explanation": why if isinstance(why, str) else ""}


def _with_line(fault: faults.Fault, error: BaseException, file: str) -> faults.Fault:
    """Return the fault with the line of `file` in which the error happened, if its traceback has one."""
    line = next(
        (frame.lineno for frame in reversed(traceback.extract_tb(error.__traceback__)) if frame.filename == file), None
    )
    return fault if line is None else {**fault, "message": f"line {line} of {fault['message']}"}


def _adk_metric() -> types.ModuleType:
    try:
        return importlib.import_module(".adk_metric", __package__)
    except Exception as error:
        hint = package_command(faults.PYTHON, '"google-adk[eval]"')
        message = f"google-adk's evaluation cannot be imported: {faults.sentence(error)}"
        raise _failed("no_framework", message, hint) from None


def _takes(function: Callable[..., Any], name: str) -> bool:
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


async def _result(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Return the function's result. A synchronous function runs in its own thread.

    Raises:
        CallFailedError: the function raised an exception.
    """
    try:
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
            value = function(*arguments)
        else:
            value = await _in_thread(function, arguments)
        return await value if inspect.isawaitable(value) else value
    except (asyncio.CancelledError, serving.CallFailedError):
        raise
    except SystemExit as error:
        code = "" if error.code is None else jsonable.shown(error.code)
        raise _failed("raised", f"it called sys.exit({code})", "", faults.project_traceback(error)) from None
    except BaseException as error:
        message = faults.sentence(faults.root_cause(error))
        raise _failed("raised", message, "", faults.project_traceback(error)) from None


async def _in_thread(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def finish(value: Any, error: BaseException | None) -> None:
        if not outcome.done():
            outcome.set_result((value, error))

    def run() -> None:
        try:
            value, error = context.run(function, *arguments), None
        except BaseException as raised:
            value, error = None, raised
        loop.call_soon_threadsafe(finish, value, error)

    # Its own thread, because a function that never returns must not block others.
    threading.Thread(target=run, daemon=True, name="function").start()
    value, error = await outcome
    if error is not None:
        raise error
    return value


def _of_import(error: BaseException, path: str) -> faults.Fault:
    if isinstance(error, SystemExit):
        return faults.fault("import_failed", f"{path}: its module called sys.exit", "", faults.project_traceback(error))
    fault = faults.import_fault(error)
    return {**fault, "message": f"{path} cannot be imported: {fault['message']}"}


def _failed(kind: str, message: str, hint: str = "", trace: str = "") -> serving.CallFailedError:
    return serving.CallFailedError(faults.fault(kind, message, hint, trace))


def _stamp(file: str) -> Stamp | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
