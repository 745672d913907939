"""The overview page of a folder without cases."""

from collections.abc import Mapping
from pathlib import Path

from workbench.agents.workspace import open_workspace
from workbench.ui.actions import keymap
from workbench.ui.screen.pages import no_evalsets_page

KEYS = keymap().keys


def words(folder: Path, keys: Mapping[str, tuple[str, ...]]) -> str:
    return "\n".join(f"{name} {text}" for name, text in no_evalsets_page(open_workspace(folder), keys))


def test_page_without_evalsets_says_how_to_create_the_first_case(tmp_path: Path) -> None:
    for number in range(7):
        agent = tmp_path / f"agent_{number}/agent.py"
        agent.parent.mkdir()
        agent.write_text("def root_agent(message, session): ...\n")
    said = words(tmp_path, KEYS)
    assert "agent_4 and 2 more." in said
    assert "Press T to talk to an agent. You can keep the conversation as the first case." in said
    (tmp_path / ".git").mkdir()
    assert "Agents found: agent_3." in words(tmp_path / "agent_3", KEYS)
    assert "to talk" not in words(tmp_path, {**KEYS, "talk": ()})
