"""A run as plain lines: verdict, agent and case."""

from collections.abc import Iterator

from workbench.exporting.exporter import ExportedRun, Exporter


def write(run: ExportedRun) -> Iterator[bytes]:
    for record in run.store.current_records():
        yield f"{record.status} {record.ref.agent}/{record.ref.eval_id}\n".encode()


EXPORTER = Exporter("lines", "a line for each case", ".txt", write)
