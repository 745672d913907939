"""The skill for coding agents has the form of https://agentskills.io/specification."""

import re
from pathlib import Path

import yaml

_TEXT = (Path(__file__).parents[2] / "docs/SKILL.md").read_text(encoding="utf-8")


def test_front_matter_follows_the_specification() -> None:
    _, front, body = re.split(r"^---\n", _TEXT, maxsplit=2, flags=re.MULTILINE)
    fields = yaml.safe_load(front)
    assert fields.keys() <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert len(fields["name"]) <= 64
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
    assert 0 < len(fields["description"]) <= 1024
    assert len(fields["compatibility"]) <= 500
    assert len(body.splitlines()) < 500


def test_skill_shows_the_main_commands_with_json() -> None:
    commands = re.findall(r"^agent-workbench (\w+)[^\n]* --json\b", _TEXT, re.MULTILINE)
    assert {"check", "status", "run", "compare", "try"} <= set(commands)


def test_skill_links_to_no_other_page() -> None:
    assert not re.search(r"\]\((?!http)", _TEXT), "it is copied without them"
