"""The pages: every link leads somewhere, and what they promise to list whole is whole."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from benchmarks.installs import install_lines
from workbench.events.events import ErrorKind

_ROOT = Path(__file__).parent.parent
_PAGES = [*sorted(_ROOT.glob("*.md")), *sorted(_ROOT.glob(".github/**/*.md")), *sorted(_ROOT.glob("docs/*.md"))]
_LINK = re.compile(r"(?:\]\(|src(?:set)?=\")([^)#\s\"]*)#?([^)\s\"]*)[)\"]")


@cache
def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page, spelled as on GitHub and GitLab."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    heads = (head.replace("`", "").strip().lower() for head in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE))
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", head)) for head in heads}


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_every_link_has_a_target(page: Path) -> None:
    for name, anchor in _LINK.findall(page.read_text(encoding="utf-8")):
        if not name.startswith("http"):
            target = (page.parent / name).resolve() if name else page
            assert target.exists(), name
            assert not anchor or anchor in _anchors(target), f"{name}#{anchor}"


@pytest.mark.parametrize("folder", ["workbench", "benchmarks", "sample_agents", "docs/pictures"])
def test_every_page_that_code_names_exists(folder: str) -> None:
    """Docstrings, help and messages name pages as `docs/NAME.md`, some with an anchor."""
    for file in (_ROOT / folder).rglob("*.py"):
        for name, anchor in re.findall(r"\bdocs/([\w-]+\.md)\b(?:#([\w-]+))?", file.read_text(encoding="utf-8")):
            target = _ROOT / "docs" / name
            assert target.exists(), f"{file}: docs/{name}"
            assert not anchor or anchor in _anchors(target), f"{file}: docs/{name}#{anchor}"


def test_index_lists_every_page_once_in_four_groups() -> None:
    text = (_ROOT / "docs/README.md").read_text(encoding="utf-8")
    pages = {page.name for page in _ROOT.glob("docs/*.md")} - {"README.md"}
    groups = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert [group.splitlines()[0] for group in groups] == ["Start", "Guides", "Reference", "Background"]
    linked = Counter(name for group in groups for name in re.findall(r"^- \[.*\]\((.*)\)", group, re.MULTILINE))
    assert linked == Counter(pages), "add a page to its group in docs/README.md"


def test_readme_has_six_links_and_six_reasons() -> None:
    text = (_ROOT / "README.md").read_text(encoding="utf-8")
    sections = {part.splitlines()[0]: part for part in text.split("\n## ")[1:]}
    for title in ("What you get only here", "Read on"):
        assert sections[title].count("\n- ") == 6, title


def test_every_kind_of_error_is_explained() -> None:
    page = (_ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    assert [kind for kind in get_args(ErrorKind) if f"`{kind}`" not in page] == []


def test_every_option_of_run_is_documented() -> None:
    from workbench.cli.run_command import run_command

    page = (_ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    options = {option for parameter in run_command.params for option in parameter.opts if option.startswith("--")}
    assert {option for option in options if option.replace("_", "-") not in page.replace("_", "-")} <= {"--help"}


def _without_front_matter(page: Path) -> str:
    """Return the text of a page. A skill for coding agents begins with YAML."""
    return re.sub(r"\A---\n.*?\n---\n\n", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("page", sorted(_ROOT.glob("docs/*.md")), ids=lambda page: page.name)
def test_page_opens_with_a_short_paragraph(page: Path) -> None:
    heading, opening, _ = _without_front_matter(page).split("\n\n", 2)
    assert re.fullmatch(r"# .+", heading)
    assert opening[0].isalpha() or opening[0] == "`", opening
    assert len(opening.splitlines()) <= 5, opening


def test_at_most_three_pages_open_with_the_same_two_words() -> None:
    openings = [_without_front_matter(page).split("\n\n", 2)[1].split()[:2] for page in _ROOT.glob("docs/*.md")]
    words, times = Counter(map(tuple, openings)).most_common(1)[0]
    assert times <= 3, f"{times} pages begin with {' '.join(words)}"


def test_there_are_at_most_40_pages() -> None:
    assert len([*_ROOT.glob("docs/*.md")]) <= 40, "merge pages that answer the same question"


_INSTALL = re.compile(r"(?:uv tool|pipx|(?<!uv )pip) install (?!--with your)([^`#\n]+)")
_CHECKOUT = re.compile(r'"(\./agent-workbench|\.)\[adk(,\w+)*\]"|"agent-workbench\[adk\] @ git\+[^"]+"')


@pytest.mark.parametrize("page", [page for page in _PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_documented_installs_use_a_checkout_and_include_adk(page: Path) -> None:
    """It is not published under its name, and the samples need google-adk."""
    for words in _INSTALL.findall(page.read_text(encoding="utf-8")):
        assert "agent-workbench" not in _CHECKOUT.sub("", words), words
        assert not re.search(r'(?<![\w"/])["\']?\.(\[|$|\s)', _CHECKOUT.sub("", words)), words


def test_readme_installs_with_each_installer() -> None:
    lines = install_lines((_ROOT / "README.md").read_text(encoding="utf-8"))
    assert lines == [f'{program} install ".[adk]"' for program in ("uv tool", "pipx", "pip")]


def _flows() -> list[tuple[str, list[str]]]:
    """Return the steps of each flow on the page about the architecture, by title."""
    page = (_ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    section = page.partition("\n## From a file to a verdict\n")[2].partition("\n## ")[0]
    titled = (part.partition("\n") for part in section.split("\n### ")[1:])
    return [(title, re.split(r"^\d+\. ", steps, flags=re.MULTILINE)[1:]) for title, _, steps in titled]


def _names_in(file: str) -> set[str]:
    """Return the functions of a module, and its methods as `Class.method`."""
    body = ast.parse((_ROOT / "workbench" / file).read_text(encoding="utf-8")).body
    functions = {item.name for item in body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)}
    classes = [item for item in body if isinstance(item, ast.ClassDef)]
    methods = {
        f"{owner.name}.{item.name}"
        for owner in classes
        for item in owner.body
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return functions | methods


def test_every_flow_has_at_most_ten_steps() -> None:
    assert [len(steps) <= 10 for _, steps in _flows()] == [True] * 3


@pytest.mark.parametrize(("title", "steps"), _flows(), ids=lambda value: value if isinstance(value, str) else "")
def test_every_function_of_a_flow_exists(title: str, steps: list[str]) -> None:
    named: list[tuple[str, str]] = []
    for span in re.findall(r"`([^`]+)`", " ".join(steps)):
        file, colon, functions = re.sub(r"\s+", " ", span).partition(": ")
        assert not file.endswith(".py") or (_ROOT / "workbench" / file).is_file(), file
        named += [(file, name) for name in functions.split(" → ") if colon]
    assert len(named) > 10
    assert [f"{file}: {name}" for file, name in named if name not in _names_in(file)] == []
