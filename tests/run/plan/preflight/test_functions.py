"""Missing functions of configs are reported before the first case."""

from pathlib import Path
from typing import Any

from tests.run.plan.preflight.cases import config, criteria, looked
from workbench.files.run_options import RunOptions
from workbench.judges.base import JudgeEnvironment
from workbench.run.plan.preflight import notices
from workbench.run.plan.preflight_cases import PreflightCase


def warnings(tmp_path: Path, *cases: PreflightCase) -> list[str]:
    folder = tmp_path / "desk"
    folder.mkdir(exist_ok=True)
    (folder / "__init__.py").touch()
    (folder / "own.py").write_text("def brief(*given): ...\n", encoding="utf-8")
    environment = JudgeEnvironment("desk", {}, "python", str(tmp_path), str(folder), str(tmp_path))
    found = notices(cases, lambda agent: environment, RunOptions())
    return [notice.message for notice in found if notice.level == "warning"]


def custom(path: str) -> PreflightCase:
    return looked(config(criteria(brief={}), custom={"brief": {"code_config": {"name": path}}}))


def judged(path: str) -> PreflightCase:
    options: dict[str, Any] = {"judge_model_options": {"judge_model": f"python:{path}"}}
    return looked(config(criteria(final_response_match_v2=options)))


def test_missing_metric_function_is_reported(tmp_path: Path) -> None:
    (message,) = warnings(tmp_path, custom("desk.own.brif"), custom("desk.own.brif"), custom("desk.own.brief"))
    assert message == f"brief will end with an error in 1 case of desk: {tmp_path}/desk/own.py has no function brif"


def test_missing_judge_function_is_reported(tmp_path: Path) -> None:
    (message,) = warnings(tmp_path, judged("desk.owm:brief"), judged("desk.own:brief"))
    assert message.startswith(
        "final_response_match_v2 will end with an error in 1 case of desk: there is no module desk.owm"
    )


def test_existing_functions_are_not_reported(tmp_path: Path) -> None:
    assert warnings(tmp_path, custom("agent.own.brief"), judged("own:brief"), custom("some_package.metrics.any")) == []
