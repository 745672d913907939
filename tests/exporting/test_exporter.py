"""Exporters: each one loads, and the docs describe it."""

import re
from dataclasses import replace
from pathlib import Path

from tests.cli.stores import all_statuses
from workbench.exporting.exporter import EXPORTERS, ExportedRun, Exporter
from workbench.files.plugins import OWN


def test_every_exporter_loads_and_writes_a_run() -> None:
    run = ExportedRun(all_statuses())
    for name in OWN["exporters"]:
        exporter = EXPORTERS.load(name)
        files = exporter.files(run)
        assert all(file.endswith(exporter.ending) for file in files)
        assert all(b"".join(content) for content in files.values())


def test_docs_describe_every_exporter(repository: Path) -> None:
    page = (repository / "docs/history.md").read_text(encoding="utf-8")
    section = page.partition("\n## Export a run\n")[2]
    rows = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert rows == list(OWN["exporters"]), "docs/history.md, table of formats, needs a row for each exporter"


def test_missing_packages_of_an_exporter_are_named() -> None:
    exporter = Exporter("pdf", "pages", ".pdf", lambda run: (), needs=("json", "no_such_package"))
    assert exporter.missing() == ["no_such_package"]


def test_file_name_consists_of_run_id_and_ending() -> None:
    store = all_statuses()
    store.run = replace(store.run, run_id="../a b")
    exporter = Exporter("txt", "text", ".txt", lambda run: (b"text",))
    assert list(exporter.files(ExportedRun(store))) == ["_a_b.txt"]
