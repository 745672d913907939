"""The workflows of the CI page: they can be read, and find the comment that `compare --markdown` writes."""

import re
from pathlib import Path
from typing import Any

import yaml

from workbench.exporting.tables import MARK

_PAGE = (Path(__file__).parents[2] / "docs/ci.md").read_text(encoding="utf-8")


def workflows() -> list[dict[str, Any]]:
    return [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", _PAGE, re.MULTILINE | re.DOTALL)]


def test_workflows_find_their_comment_by_its_first_line() -> None:
    _, _, github, gitlab = workflows()
    comment = github["jobs"]["compare"]["steps"][-1]["run"]
    assert f'startswith("{MARK}")' in comment
    assert f'startswith("{MARK}")' in "\n".join(gitlab["compare"]["script"])


def test_only_the_comparison_decides_about_failed_cases() -> None:
    """A run with failed cases (1), or with cases that could not be judged (3), goes on to the gate. Others do not."""
    _, _, github, gitlab = workflows()
    runs = [step["run"] for step in github["jobs"]["compare"]["steps"] if "workbench run" in step.get("run", "")]
    runs += [line for line in gitlab["evaluate"]["script"] if "workbench run" in line]
    assert len(runs) == 2
    assert all("case $? in 1 | 3) ;; *) exit 1 ;; esac" in run for run in runs)
