"""What others changed on disk, in one line."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.projects import BAD, GOOD, Project, case
from workbench.agents.workspace import Workspace, open_workspace
from workbench.files.file_access import replace_content
from workbench.freshness.follow import DiskNews, disk_words, read_news


class Folder:
    """A project whose files others change."""

    def __init__(self, root: Path) -> None:
        self.project = Project(root)
        self.project.evalset(GOOD, BAD)
        self.shown = self.open()

    def open(self) -> Workspace:
        return open_workspace(self.project.root)

    def news(self, *files: Path, inputs: Mapping[Path, str] | None = None) -> DiskNews:
        walked = {path for path in self.project.root.rglob("*") if path.is_dir()}
        return read_news(self.shown, files, walked, inputs or {}, self.open)

    def words(self, *files: Path) -> str:
        return disk_words(self.news(*files).changes)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_changed_new_and_missing_cases_are_counted(folder: Folder) -> None:
    file = folder.project.evalset(GOOD, case("bad", "other words"))
    assert folder.words(file) == "talk.evalset.json changed on disk: 1 case"
    folder.project.evalset(case("good", "changed"), case("new"))
    assert folder.words(file) == "talk.evalset.json changed on disk: 3 cases"


def test_file_saved_with_the_same_content_is_not_reported(folder: Folder) -> None:
    file = folder.project.evalset(GOOD, BAD)
    news = folder.news(file)
    assert (news.workspace, news.changes) == (None, ())


def test_own_save_is_shown_without_a_message(folder: Folder) -> None:
    file = folder.shown.evalsets[0].file
    replace_content(file, file.read_bytes().replace(b"hello", b"good morning"))
    news = folder.news(file)
    assert news.workspace is not None
    assert news.changes == ()


def test_changed_config_is_reported_with_its_number_of_cases(folder: Folder) -> None:
    config = folder.project.write("echo/test_config.json", {"criteria": {"response_match_score": 0.5}})
    assert folder.words(config) == "test_config.json changed on disk: criteria of 2 cases"


def test_new_agent_with_evalsets_is_described_in_one_line(folder: Folder) -> None:
    folder.project.write("other/agent.py", "def root_agent(message, session):\n    return message\n")
    folder.project.evalset(GOOD, path="other/a.evalset.json")
    folder.project.evalset(GOOD, BAD, path="other/b.evalset.json")
    news = folder.news(folder.project.root / "other")
    assert news.moved
    assert disk_words(news.changes) == (
        "a.evalset.json appeared on disk: 1 case; b.evalset.json appeared on disk: 2 cases; and 1 more change"
    )


def test_deleted_evalset_is_removed_from_the_workspace(folder: Folder) -> None:
    file = folder.shown.evalsets[0].file
    file.unlink()
    assert folder.words(file) == "talk.evalset.json is gone: 2 cases"


def test_broken_evalset_is_reported_with_its_error(folder: Folder) -> None:
    file = folder.project.write("echo/talk.evalset.json", "{")
    assert folder.words(file) == "talk.evalset.json changed on disk: it is broken now"


def test_files_without_effect_on_cases_are_not_read(folder: Folder) -> None:
    readme, log = folder.project.write("README.md", "x"), folder.project.write("echo/agent.log", "x")

    def fail() -> Workspace:
        raise AssertionError("the folder was read again")

    news = read_news(folder.shown, [readme, log, folder.project.root / "echo/agent.py"], (), (), fail)
    assert news == DiskNews(None, ())


def test_changed_inputs_and_triage_are_reported_separately(folder: Folder) -> None:
    prompt = folder.project.write("echo/prompt.txt", "x")
    triage = folder.project.write("echo/talk.triage.json", "{}")
    news = folder.news(prompt, triage, inputs={prompt: ""})
    assert (news.inputs, news.triage) == ((prompt,), (triage,))
    assert disk_words(news.changes) == "talk.triage.json changed on disk"
