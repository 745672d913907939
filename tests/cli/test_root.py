"""The root folder: every command finds the same `.workbench`."""

from tests.cli.projects import GOOD, Project


def test_run_of_a_subfolder_is_stored_and_listed_in_the_current_folder(project: Project) -> None:
    (project.root / ".git").rmdir()
    project.evalset(GOOD)
    assert project.run("run", "echo").returncode == 0
    assert (project.root / ".workbench/runs.db").is_file()
    assert not (project.root / "echo/.workbench").exists()
    assert "1 passed" in project.run("history").stdout


def test_existing_state_folder_of_an_agent_is_used_and_named(project: Project) -> None:
    project.evalset(GOOD)
    (project.root / "echo/.workbench").mkdir()
    done = project.run("run", "echo", "--plain")
    assert done.returncode == 0
    assert "echo/.workbench already exists" in done.stderr
    listed = project.run("history")
    assert "(in echo/.workbench)" in listed.stdout
    assert "also using the runs in echo/.workbench" in listed.stderr
    assert project.run("score", "last").returncode == 0
    assert project.run("history", "pin", "last").returncode == 0
    assert "baseline" in project.run("history").stdout
    assert not (project.root / ".workbench").exists()
    assert project.run("history", "delete", "last").returncode == 0
