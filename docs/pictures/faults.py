"""The picture of the page about faults: the summary of a matrix for three agents."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.pictures.frame import Frame, Line, Piece
from docs.pictures.svg import still
from tests.run.injection.fault_agents import write_project
from workbench import Project, RunOptions
from workbench.files.prices import Prices
from workbench.results.cells import cell_len
from workbench.results.plain_summary import SummaryLine, summary_lines

FILE = Path(__file__).parent / "faults.svg"
_COMMAND = "agent-workbench run . --inject matrix"
_PAPER = "#12151c"
_TEXT = "fill:#d6dbe6"
_STYLES = {
    "": _TEXT,
    "bold": f"{_TEXT};font-weight:bold",
    "green": "fill:#7fd88f",
    "bold red": "fill:#ff6b6b;font-weight:bold",
    "bold magenta": "fill:#f2a65a;font-weight:bold",
    "bold yellow": "fill:#e5c07b;font-weight:bold",
}


async def make() -> list[Path]:
    """Run the matrix, and write the end of its summary."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        (root / ".git").mkdir()
        write_project(root)
        async with Project.open(root) as project:
            matrix = await project.fault_matrix(await project.plan(options=RunOptions(inject="matrix")))
            if matrix.first is not None:
                matrix.add((await project.run(matrix.first).result()).read_current())
            store = await project.run(matrix.plan()).result()
            lines = list(summary_lines(store, Prices()))
    table = next(number for number, line in enumerate(lines) if line.text == "Tool faults:")
    shown = [SummaryLine(f"$ {_COMMAND}", style="green"), SummaryLine(""), *lines[table:]]
    columns = max(line.indent + cell_len(line.text) for line in shown) + 1
    FILE.write_text(still(Frame(columns, tuple(_line(line, columns) for line in shown)), _COMMAND), "utf-8")
    return [FILE]


def _line(line: SummaryLine, columns: int) -> Line:
    return (Piece(0, columns, _PAPER, ""), *_pieces(line))


def _pieces(line: SummaryLine) -> Iterator[Piece]:
    """Yield the pieces of a line: its styled parts, and the text between them."""
    place = 0
    for start, end, style in (*line.spans, (len(line.text), len(line.text), "")):
        for first, last, name in ((place, start, line.style), (start, end, style)):
            if text := line.text[first:last]:
                left = line.indent + cell_len(line.text[:first])
                yield Piece(left, cell_len(text), _STYLES[name], text)
        place = end
