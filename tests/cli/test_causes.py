"""A run of the planted project: the printed causes, and the same in exports and in the restored summary."""

import re
from pathlib import Path

from tests.cli.projects import Project
from tests.planted import ERRORS, FAILING, write
from workbench.store.history.reading import open_summary

PLANTED = {**FAILING, **ERRORS}
SHARED = {text: count for text, count in PLANTED.items() if count > 1}


def test_planted_failures_are_counted_by_cause_in_output_store_and_exports(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    project = Project(tmp_path / "other")
    project.root = write(tmp_path / "planted", passing=5)
    done = project.run("run", ".", "--plain")
    assert done.returncode == 3
    assert done.stdout.splitlines()[-1].endswith(" s: 5 passed, 48 failed, 7 errors")
    printed = re.findall(
        r"^ +(\d+)  (.+?)(?: \((?:error|function)\))?$", done.stdout.partition("Why cases fail:")[2], re.M
    )
    assert {text: int(count) for count, text in printed} == {**SHARED, "one of a kind": len(PLANTED) - len(SHARED)}
    summary, trouble = open_summary("last", project.root / ".workbench", project.root)
    assert not trouble
    stored = [one.cause.text for one in summary.executions.values() if one.cause is not None]
    assert {text: stored.count(text) for text in stored} == PLANTED
    markdown = project.run("export", "last", "--format", "md").stdout
    page = project.run("export", "last", "--format", "html").stdout
    for text, count in SHARED.items():
        assert re.search(rf"^\| {count} \| `{re.escape(text)}( \(\w+\))?` \|$", markdown, re.MULTILINE)
        assert re.search(rf"<tr><td>{re.escape(text)}( \(\w+\))?<td>{count}</tr>", page)
