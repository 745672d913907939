"""ADK's `AgentEvaluator` for existing tests: the same methods and arguments with our engine and verdicts.

Source: google/adk/evaluation/agent_evaluator.py of google-adk 2.13. `docs/pytest.md` lists the differences.
"""

import csv
import importlib
import inspect
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.editing.migration import migrate
from workbench.files.evalset import read_initial_session
from workbench.files.file_access import replace_content
from workbench.files.invocation import content_text, tool_calls
from workbench.files.opening import name_of
from workbench.files.run_options import RunOptions
from workbench.project.targets import Targets
from workbench.testing.evaluation import evaluate_targets, name_of_agent
from workbench.testing.results import CaseOutcome, Evaluation
from workbench.worker.driver import Loaded
from workbench.worker.drivers import NoAgentError, recognised


async def load_module(name: str, agent_name: str | None) -> tuple[Loaded, Path | None]:
    """Return the agent of the module `name`, or its sub-agent `agent_name`, and the module's folder.

    The folder is None if the module has no file.

    ADK's rules (`AgentEvaluator._get_agent_for_eval`): the module has a member `agent`, or its name ends in ".agent".
    The agent is `root_agent` there, else the result of `get_agent_async()`. An App called `app` is used with it. Here,
    an App or a callable alone is enough.

    Raises:
        ImportError: there is no such module. Any other error of the import is raised too.
        ValueError: the module defines no agent, or no such sub-agent.
    """
    module = importlib.import_module(name)
    if not (hasattr(module, "agent") or name.endswith(".agent")):
        raise ValueError(f"module {name} has no member `agent`, and its name does not end in `.agent`")
    holder = getattr(module, "agent", module)
    app = getattr(holder, "app", None)
    given = getattr(holder, "root_agent", None)
    if given is None and callable(factory := getattr(holder, "get_agent_async", None)):
        made = factory()
        made = await made if inspect.isawaitable(made) else made
        given = made[0] if isinstance(made, tuple) else made
    try:
        loaded = recognised(app if given is None and app is not None else given, "", f"{name}.root_agent")
        if loaded.app is None and app is not None:
            loaded = replace(loaded, app=recognised(app, "", f"{name}.app").app)
    except NoAgentError as error:
        raise ValueError(f"module {name}: {error}") from None
    if agent_name:
        root = loaded.agent
        found = root.find_agent(agent_name) if hasattr(root, "find_agent") else None
        if found is None:
            raise ValueError(f"{name_of_agent(root)} has no sub-agent {agent_name!r}")
        loaded = replace(loaded, agent=found)
    file = getattr(module, "__file__", None)
    folder = None if file is None else Path(file).absolute().parent
    return replace(loaded, name=name_of_agent(loaded.agent)), folder


_RUNS = 2
_CONCURRENCY = 4
_NO_MANAGER = (
    "eval_set_results_manager is not supported: tests save nothing. `agent-workbench run` stores runs, and "
    "`agent-workbench export` exports them"
)


class AgentEvaluator:
    """A replacement for ADK's class of this name. The agent runs in the test's own process."""

    @staticmethod
    async def evaluate(
        agent_module: str,
        eval_dataset_file_path_or_dir: str,
        num_runs: int = _RUNS,
        agent_name: str | None = None,
        initial_session_file: str | None = None,
        print_detailed_results: bool = True,
        artifact_service: Any = None,
        output_file: str | None = None,
        app_name: str | None = None,
        eval_set_results_manager: Any = None,
    ) -> None:
        """Evaluate the agent of `agent_module` on a file, or on all `*.test.json` below a folder.

        Each case is executed `num_runs` times. With `print_detailed_results`, each conversation is printed with its
        verdicts. `output_file` is a CSV file. It gets a row for each metric, turn and execution.

        Raises:
            AssertionError: an execution of a case did not pass. The text explains each one.
            ImportError: there is no module `agent_module`.
            NotImplementedError: `eval_set_results_manager` is given, with an `app_name`.
            OSError: `output_file` cannot be written.
            ValueError: the arguments or files are wrong, and nothing ran.
        """
        _check(num_runs, app_name, eval_set_results_manager)
        if not eval_dataset_file_path_or_dir:
            raise ValueError("`eval_dataset_file_path_or_dir` is empty.")
        words = _files(Path(eval_dataset_file_path_or_dir))
        session_file = Path(initial_session_file) if initial_session_file else None
        targets = Targets(words, Path.cwd(), initial_session_file=session_file)
        result = await _evaluate(targets, agent_module, agent_name, num_runs, artifact_service)
        _report(result, print_detailed_results, output_file)

    @staticmethod
    async def evaluate_eval_set(
        agent_module: str,
        eval_set: Any,
        criteria: Mapping[str, float] | None = None,
        eval_config: Any = None,
        num_runs: int = _RUNS,
        agent_name: str | None = None,
        print_detailed_results: bool = True,
        artifact_service: Any = None,
        output_file: str | None = None,
        app_name: str | None = None,
        eval_set_results_manager: Any = None,
    ) -> None:
        """Evaluate an `EvalSet` with an `EvalConfig` of ADK, or with dicts of the same content.

        `criteria`, deprecated in ADK, are thresholds by name. The errors are the same as for `evaluate`.
        """
        _check(num_runs, app_name, eval_set_results_manager)
        config = {"criteria": dict(criteria)} if criteria else _json(eval_config)
        if config is None:
            raise ValueError("`eval_config` is required.")
        content = _json(eval_set)
        if not content or not (content.get("eval_cases") or content.get("evalCases")):
            raise ValueError("No eval cases were evaluated: `eval_set` has no eval cases.")
        name = re.sub(r"\W+", "_", str(content.get("eval_set_id") or content.get("evalSetId") or "evalset"))[:60]
        with tempfile.TemporaryDirectory(prefix="agent-workbench-") as folder:
            file = Path(folder, f"{name}.evalset.json")
            file.write_text(json.dumps(content), encoding="ascii")
            criteria_file = Path(folder, "test_config.json")
            criteria_file.write_text(json.dumps(config), encoding="ascii")
            targets = Targets((str(file),), Path.cwd(), config=criteria_file)
            result = await _evaluate(targets, agent_module, agent_name, num_runs, artifact_service)
        _report(result, print_detailed_results, output_file)

    @staticmethod
    def migrate_eval_data_to_new_schema(
        old_eval_data_file: str, new_eval_data_file: str, initial_session_file: str | None = None
    ) -> None:
        """Convert a test file of an old format to the current schema, like `agent-workbench migrate`.

        Raises:
            ValueError: a file name is empty, a file is broken, or the old file already has the current schema.
            OSError: the new file cannot be written.
        """
        if not old_eval_data_file or not new_eval_data_file:
            raise ValueError("One of old_eval_data_file or new_eval_data_file is empty.")
        session = read_initial_session(Path(initial_session_file)) if initial_session_file else None
        new = Path(new_eval_data_file)
        migration = migrate(Path(old_eval_data_file), name=name_of(new), initial_session=session)
        replace_content(new, migration.text.encode("utf-8", "surrogatepass"))

    @staticmethod
    def find_config_for_test_file(test_file: str) -> Any:
        """Return ADK's own `EvalConfig` for a test file, for `evaluate_eval_set`. Needs google-adk."""
        from google.adk.evaluation.agent_evaluator import AgentEvaluator as AdkAgentEvaluator

        return AdkAgentEvaluator.find_config_for_test_file(test_file)


async def _evaluate(
    targets: Targets, module: str, agent_name: str | None, runs: int, artifact_service: Any
) -> Evaluation:
    loaded, folder = await load_module(module, agent_name)
    options = RunOptions(runs=runs, concurrency=_CONCURRENCY, python=Path(sys.executable))
    return await evaluate_targets(targets, options, replace(loaded, artifacts=artifact_service), folder)


def _check(runs: int, app_name: str | None, manager: Any) -> None:
    if runs < 1:
        raise ValueError(f"`num_runs` must be at least 1, got {runs}.")
    if manager is not None and not app_name:
        raise ValueError("app_name is required when eval_set_results_manager is provided.")
    if manager is not None:
        raise NotImplementedError(_NO_MANAGER)


def _files(path: Path) -> tuple[str, ...]:
    if not path.is_dir():
        return (str(path),)
    files = tuple(str(file) for file in sorted(path.rglob("*.test.json")) if file.is_file())
    if not files:
        raise ValueError(f"No `*.test.json` eval files found in {path}, so there is nothing to evaluate.")
    return files


def _report(result: Evaluation, detailed: bool, output_file: str | None) -> None:
    if detailed:
        for case in result:
            sys.stdout.write(f"{case.details}\n")
    if output_file:
        _append_rows(result, Path(output_file))
    result.assert_passed()


def _json(value: Any) -> dict[str, Any] | None:
    """Return a pydantic model as the JSON data of its file. A dict and None are returned unchanged."""
    if value is None or isinstance(value, dict):
        return value
    dumped: dict[str, Any] = json.loads(value.model_dump_json(exclude_none=True, serialize_as_any=True))
    return dumped


_COLUMNS = (
    "eval_set_id eval_id metric_name threshold score eval_status"
    " prompt expected_response actual_response expected_tool_calls actual_tool_calls"
)


def _append_rows(result: Evaluation, file: Path) -> None:
    """Append a row for each metric, turn and execution. A new file gets a header, and its folder is created."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = not file.exists()
    with file.open("a", encoding="utf-8", errors="backslashreplace", newline="") as stream:
        writer = csv.DictWriter(stream, _COLUMNS.split())
        if new:
            writer.writeheader()
        for case in result:
            writer.writerows(_rows(case))


def _rows(case: CaseOutcome) -> Iterator[dict[str, Any]]:
    for name in case.metrics:
        for number, turn in enumerate(case.turns):
            if name not in turn.metrics:
                continue
            expected = case.expected[number] if case.expected and number < len(case.expected) else {}
            verdict = turn.metrics[name]
            yield {
                "eval_set_id": case.eval_set_id,
                "eval_id": case.eval_id,
                "metric_name": name,
                "threshold": case.metrics[name].threshold,
                "score": verdict.score,
                "eval_status": verdict.status.upper(),
                "prompt": content_text(turn.user),
                "expected_response": content_text(expected.get("final_response")),
                "actual_response": content_text((turn.actual or {}).get("final_response")),
                "expected_tool_calls": _calls(expected),
                "actual_tool_calls": _calls(turn.actual or {}),
            }


def _calls(invocation: dict[str, Any]) -> str:
    return "\n".join(json.dumps({"name": call.name, "args": call.args}) for call in tool_calls(invocation))
