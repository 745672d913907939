"""The pages: every link leads somewhere, and what they promise to list whole is whole."""

import re
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from workbench.events import ErrorKind

_ROOT = Path(__file__).parent.parent
_PAGES = [_ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "AGENTS.md")] + [
    *sorted(_ROOT.glob("docs/*.md"))
]
_LINK = re.compile(r"\]\(([^)#\s]*)#?([^)\s]*)\)")


@cache
def _anchors(page: Path) -> set[str]:
    """What a link can lead to within a page, spelled as GitHub and GitLab do."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    heads = (head.replace("`", "").strip().lower() for head in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE))
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", head)) for head in heads}


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for name, anchor in _LINK.findall(page.read_text(encoding="utf-8")):
        if not name.startswith("http"):
            target = (page.parent / name).resolve() if name else page
            assert target.exists(), name
            assert not anchor or anchor in _anchors(target), f"{name}#{anchor}"


def test_every_page_is_found_from_the_readme_or_for_those_who_change_it() -> None:
    named = {name for page in _PAGES[:2] for name, _ in _LINK.findall(page.read_text(encoding="utf-8"))}
    assert {f"docs/{page.name}" for page in _PAGES[4:]} <= named


def test_every_kind_of_error_is_explained() -> None:
    page = (_ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    assert [kind for kind in get_args(ErrorKind) if f"`{kind}`" not in page] == []


def test_every_option_of_run_stands_in_its_page() -> None:
    from workbench.cli.run_command import run_command

    page = (_ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    options = {option for parameter in run_command.params for option in parameter.opts if option.startswith("--")}
    assert {option for option in options if option.replace("_", "-") not in page.replace("_", "-")} <= {"--help"}
