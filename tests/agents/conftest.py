"""Short helpers for projects: `tree` writes files below a folder, with minimal evalsets and agents."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

AGENT = "root_agent = make()\n"
Tree = Callable[[Mapping[str, str]], Path]


def evalset(app_name: str | None = None, eval_set_id: str = "set") -> str:
    """Return an evalset with one case. Without `app_name`, it has no `session_input`."""
    case: dict[str, object] = {
        "eval_id": "one",
        "conversation": [{"user_content": {"role": "user", "parts": [{"text": "hello"}]}}],
    }
    if app_name is not None:
        case["session_input"] = {"app_name": app_name, "user_id": "u"}
    return json.dumps({"eval_set_id": eval_set_id, "eval_cases": [case]})


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Write files and return the project's folder, `project`.

    The argument maps paths below the folder to texts. A path that ends in "/" is an empty folder.
    """
    project = tmp_path / "project"
    project.mkdir()

    def write(files: Mapping[str, str]) -> Path:
        for name, text in files.items():
            path = project / name
            if name.endswith("/"):
                path.mkdir(parents=True, exist_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        return project

    return write
