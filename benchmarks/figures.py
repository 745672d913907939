"""Figures as data: each benchmark adds its own to one file, so that a run can be compared with an earlier one."""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

VARIABLE = "BENCHMARK_FIGURES"
"""Names the file, one figure a line; without it nothing is written."""


@dataclass(frozen=True)
class Figure:
    """A measurement for a goal of the table (`G8`), in `unit` (`x` for a ratio). `goal` is None if there is no goal."""

    goal_id: str
    name: str
    value: float
    unit: str = ""
    goal: float | None = None
    more_is_better: bool = False

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached, or None without a goal."""
        if self.goal is None:
            return None
        return self.value >= self.goal if self.more_is_better else self.value <= self.goal


def record(
    goal_id: str, name: str, value: float, unit: str = "", *, goal: float | None = None, more_is_better: bool = False
) -> None:
    """Add a figure to the file of this run, if there is one."""
    file = os.environ.get(VARIABLE)
    if file:
        with Path(file).open("a", encoding="utf-8") as out:
            out.write(json.dumps(asdict(Figure(goal_id, name, value, unit, goal, more_is_better))) + "\n")


def read(file: Path) -> list[Figure]:
    """The figures of a run.

    Raises:
        OSError, ValueError: the file cannot be read, or is no such file.
    """
    text = file.read_text(encoding="utf-8")
    try:
        try:
            listed = json.loads(text)["figures"]
        except (json.JSONDecodeError, KeyError):
            listed = [json.loads(line) for line in text.splitlines()]  # As they are collected: one a line.
        return [Figure(**item) for item in listed]
    except (TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{file} has no figures: {error!r}") from None


def write(file: Path, figures: Iterable[Figure]) -> None:
    """Store the figures of a run as one JSON object."""
    content = {"schema": "agent-workbench/benchmarks/1", "figures": [asdict(figure) for figure in figures]}
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def table(figures: Iterable[Figure], earlier: Iterable[Figure] = ()) -> Iterator[str]:
    """Return the lines of the table, with ratios to `earlier` figures if there are any."""
    before = {(figure.goal_id, figure.name): figure.value for figure in earlier}
    yield f"{'goal':6} {'figure':52} {'value':>12} {'wanted':>12}        {'× earlier' if before else ''}"
    ordered = sorted(figures, key=lambda figure: (len(figure.goal_id), figure.goal_id))
    for figure in ordered:
        sign = "≥" if figure.more_is_better else "≤"
        wanted = "" if figure.goal is None else f"{sign} {figure.goal:,.4g} {figure.unit}"
        verdict = {True: "yes", False: "NO", None: ""}[figure.reached]
        then = before.get((figure.goal_id, figure.name))
        ratio = "" if not then else f"{figure.value / then:8.2f}"
        value = f"{figure.value:,.4g} {figure.unit}"
        yield f"{figure.goal_id:6} {figure.name:52} {value:>12} {wanted:>12}   {verdict:4} {ratio}".rstrip()
