"""A run as plain lines: verdict, agent and case."""

from collections.abc import Iterator

from workbench.exporting.exporter import ExportedRun, Exporter
from workbench.results.plain_lines import case_label


def write(run: ExportedRun) -> Iterator[bytes]:
    for record in run.store.current_records():
        yield f"{record.status} {case_label(record)}\n".encode()


EXPORTER = Exporter("lines", "a line for each case", ".txt", write)
