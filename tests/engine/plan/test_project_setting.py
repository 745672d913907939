"""The project's setting in pyproject.toml: which runs are frozen if the command line does not say."""

from pathlib import Path

import pytest

from workbench.engine.plan.project_setting import project_mode, with_project_setting
from workbench.engine.plan.run_options import RunOptions, UsageFaultError


@pytest.mark.parametrize(
    ("content", "mode"),
    [
        ('[tool.agent-workbench]\nfrozen = "tools"\n', "tools"),
        ('[tool.agent-workbench]\nfrozen = "all"\n', "all"),
        ('[tool.agent-workbench]\nfrozen = "off"\n', ""),
        ("[tool.agent-workbench]\n", ""),
        ('[project]\nname = "shop"\n', ""),
        ("this is no TOML, and not about us", ""),
    ],
)
def test_setting_of_the_project_is_read(tmp_path: Path, content: str, mode: str) -> None:
    assert project_mode(tmp_path) == ""
    (tmp_path / "pyproject.toml").write_text(content)
    assert project_mode(tmp_path) == mode
    assert with_project_setting(RunOptions(), tmp_path).frozen == mode
    assert with_project_setting(RunOptions(frozen=""), tmp_path).frozen == "", "the command line wins"


@pytest.mark.parametrize(
    "content",
    [
        '[tool.agent-workbench]\nfrozen = "yes"\n',
        "[tool.agent-workbench]\nfrozen = true\n",
        '[tool]\nagent-workbench = "tools"\n',
        "tool = 5 # agent-workbench",
        "[tool.agent-workbench\n",
        "[tool.agent-workbench]\n\ud800",
    ],
)
def test_unreadable_setting_refuses_the_run(tmp_path: Path, content: str) -> None:
    (tmp_path / "pyproject.toml").write_bytes(content.encode("utf-8", "surrogatepass"))
    with pytest.raises(UsageFaultError, match=r"pyproject\.toml"):
        project_mode(tmp_path)
