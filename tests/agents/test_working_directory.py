from pathlib import Path

from workbench.agents.environment import working_directory


def test_working_directory_follows_the_agents_project(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "repository", tmp_path / "elsewhere"
    project = root / "agents" / "travel"
    agent = project / "travel"
    for folder in (agent, elsewhere, project / "eval"):
        folder.mkdir(parents=True)
    assert working_directory(agent, root, elsewhere) == root
    assert working_directory(agent, root, project) == project, "as with adk: the start folder, if inside the project"
    (project / "pyproject.toml").touch()
    assert working_directory(agent, root, root) == project, "otherwise the project's own folder"
    assert working_directory(agent, root, elsewhere) == project
    assert working_directory(agent, root, project / "eval") == project / "eval"


def test_marks_above_the_root_and_in_the_agents_own_folder_do_not_count(tmp_path: Path) -> None:
    root = tmp_path / "root"
    agent = root / "desk"
    agent.mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    (agent / "requirements.txt").touch()
    assert working_directory(agent, root, tmp_path) == root
