"""The files of an agent's folder on which its verdicts may depend."""

import os
from pathlib import Path
from typing import Any

import pytest

from workbench.agents.workspace import open_workspace
from workbench.freshness import agent_inputs
from workbench.freshness.agent_inputs import AgentFiles, files_in
from workbench.freshness.staleness import compare
from workbench.freshness.watcher import Watcher
from workbench.store.digests import Digests
from workbench.store.inputs import Bundle, Record

ANSWERS = "def root_agent(message, session):\n    return 'ok'\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in {
        ".gitignore": "models/\n",
        "desk/agent.py": ANSWERS,
        "desk/talk.evalset.json": '{"eval_set_id": "talk", "eval_cases": []}',
        "desk/data/prices.csv": "1",
        "desk/models/large.bin": "1",
        "desk/node_modules/a.js": "1",
        "desk/env/pyvenv.cfg": "",
        "desk/env/lib/module.py": "",
        "desk/__pycache__/agent.pyc": "",
        "desk/.cache/answers.json": "{}",
        "desk/helper/agent.py": ANSWERS,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path / ".git").mkdir()
    return tmp_path


def _names(root: Path) -> set[str]:
    found = files_in(root / "desk", [root / "desk", root / "desk/helper"])
    return {path.relative_to(root).as_posix() for path in found}


def test_installed_hidden_and_ignored_folders_are_not_inputs(root: Path) -> None:
    assert _names(root) == {"desk/agent.py", "desk/talk.evalset.json", "desk/data/prices.csv"}


def test_all_inputs_are_in_watched_folders(root: Path) -> None:
    workspace = open_workspace(root)
    watched = set(Watcher(workspace, lambda: workspace, dict).changes._folders())
    assert {root / name for name in ("desk", "desk/data")} <= watched
    assert {(root / name).parent for name in _names(root)} <= watched
    assert watched.isdisjoint(root / name for name in ("desk/models", "desk/node_modules", "desk/env", "desk/.cache"))


@pytest.mark.parametrize("everything", [True, False])
def test_changes_among_many_files_name_their_folder(
    root: Path, monkeypatch: pytest.MonkeyPatch, everything: bool
) -> None:
    monkeypatch.setattr(agent_inputs, "_MOST_FILES", 3)
    data = root / "desk/data"
    for number in range(4):
        (root / f"desk/m{number}.py").write_text(str(number), encoding="utf-8")
        (data / f"d{number}").write_text(str(number), encoding="utf-8")

    def bundle(then: Bundle | None = None) -> Bundle:
        files = AgentFiles(root / "desk", root, [root / "desk/helper"], Digests("salt"))
        if then is None:
            return files.bundle([root / "desk/agent.py"], [data], everything=everything)
        return files.bundle_like(then.inputs["agent_file"], then.inputs["agent_folder"])

    def changed() -> list[str]:
        return [change.name for change in compare(Record("", (then,)), Record("", (bundle(then),)))]

    then = bundle()
    assert set(then.inputs["agent_file"]) == {"desk/agent.py", "desk/", "desk/data/"}
    assert changed() == []
    (root / "desk/m3.py").write_text("other", encoding="utf-8")
    assert changed() == ["desk/"]
    (root / "desk/m3.py").write_text("3", encoding="utf-8")
    (data / "d9").touch()
    assert changed() == (["desk/", "desk/data/"] if everything else ["desk/data/"])
    (data / "d9").unlink()
    (root / "desk/m9.py").touch()
    assert changed() == ["desk/"]


def test_unreadable_folder_is_named_instead_of_its_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = os.scandir

    def scandir(path: Any) -> Any:
        if not isinstance(path, int) and Path(path).name == "data":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    bundle = AgentFiles(root / "desk", root, [root / "desk/helper"], Digests("salt")).bundle((), (), everything=True)
    assert bundle.inputs["agent_file"]["desk/data"] == "unreadable"
    assert "desk/data/prices.csv" not in bundle.inputs["agent_file"]
