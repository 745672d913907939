"""The project's settings in pyproject.toml: where agents run, and which runs are frozen, unless the user says."""

from pathlib import Path

import pytest

from workbench.engine.plan.project_setting import project_mode, with_project_setting
from workbench.engine.plan.run_options import RunOptions, UsageFaultError
from workbench.places.choice import PlaceChoice


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


CLUSTER = """
[tool.agent-workbench]
place = "cluster"

[tool.agent-workbench.places.cluster]
at = "ssh:one,two"
slots = 20
remote-python = "/opt/bin/python3"
"""
NAMED = PlaceChoice("ssh:one,two", "/opt/bin/python3", slots=20, name="cluster")


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        (None, NAMED),
        (PlaceChoice("cluster"), NAMED),
        (PlaceChoice("", "/own/python"), PlaceChoice("ssh:one,two", "/own/python", slots=20, name="cluster")),
        (PlaceChoice("", insecure=True), PlaceChoice("ssh:one,two", "/opt/bin/python3", True, 20, "cluster")),
        (PlaceChoice("local"), PlaceChoice("local")),
        (PlaceChoice("ssh:three"), PlaceChoice("ssh:three")),
    ],
)
def test_place_is_chosen_by_the_command_line_or_the_project(
    tmp_path: Path, chosen: PlaceChoice | None, found: PlaceChoice
) -> None:
    (tmp_path / "pyproject.toml").write_text(CLUSTER)
    with_project_setting(RunOptions(place=PlaceChoice("cluster")), tmp_path)
    assert with_project_setting(RunOptions(place=chosen), tmp_path).place == found


def test_without_a_setting_agents_run_on_this_machine(tmp_path: Path) -> None:
    assert with_project_setting(RunOptions(), tmp_path).place is None
    with pytest.raises(UsageFaultError, match="--remote-python is for other machines"):
        with_project_setting(RunOptions(place=PlaceChoice("", "/own/python")), tmp_path)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('at = ""', "`at` in [tool.agent-workbench.places.cluster] is ''"),
        ("at = 5", "`at` in [tool.agent-workbench.places.cluster] is 5"),
        ('at = "local"\nslots = 0', "`slots` in [tool.agent-workbench.places.cluster] is 0"),
        ('at = "local"\nslots = true', "`slots` in [tool.agent-workbench.places.cluster] is True"),
        ('at = "local"\nremote-python = 3', "`remote-python` in [tool.agent-workbench.places.cluster] is 3"),
        ('at = "local"\ninsecure = true', "a key of [tool.agent-workbench.places.cluster] is 'insecure'"),
    ],
)
def test_wrong_place_in_the_settings_is_refused(tmp_path: Path, line: str, fault: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.agent-workbench.places.cluster]\n{line}\n")
    with pytest.raises(UsageFaultError) as refused:
        with_project_setting(RunOptions(place=PlaceChoice("cluster")), tmp_path)
    assert str(refused.value) == f"pyproject.toml: {fault}"
