"""Problems of installed extensions, as `check` reports them."""

from pathlib import Path

from workbench.editing.check.problem import Problem
from workbench.files.faults import Fault
from workbench.files.plugins import Point, Trouble, installed


def extension_problems() -> list[Problem]:
    """Import the extensions of other packages and return their problems."""
    found = installed()
    plugins = {one.point for one in found.extensions if not one.is_own}
    points = plugins | {trouble.extension.point for trouble in found.duplicates}
    return [_problem(trouble) for point in sorted(points) for trouble in _troubles(point)]


def _troubles(point: Point) -> list[Trouble]:
    # An extension point is imported only if a package extends it.
    if point == "agents":
        from workbench.agents.python_source import driver_troubles

        return driver_troubles()
    if point == "criteria":
        from workbench.criteria.registry import CRITERIA

        return CRITERIA.troubles()
    if point == "judges":
        from workbench.judges.kinds import JUDGES

        return JUDGES.troubles()
    if point == "exporters":
        from workbench.exporting.exporter import EXPORTERS

        return EXPORTERS.troubles()
    if point == "sections":
        from workbench.results.sections import SECTIONS

        return SECTIONS.troubles()
    extensions = [one for one in installed().extensions if one.point == point]
    return [Trouble(one, f"there is no extension point agent_workbench.{point}") for one in extensions]


def _problem(trouble: Trouble) -> Problem:
    package = trouble.extension.package
    if trouble.is_usable:
        return Problem("extension", Fault(Path(package), 0, 0, "", str(trouble), severity="note"))
    way = f"It is ignored: update {package}, or uninstall it"
    return Problem("extension", Fault(Path(package), 0, 0, "", str(trouble), way, "warning"))
