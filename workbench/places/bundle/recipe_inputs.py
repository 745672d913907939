"""The recipe of an interpreter as an input of verdicts that were made on other machines."""

from pathlib import Path

from workbench.dependencies.record import RECIPE, REMOTE_PYTHON
from workbench.places.bundle.recipe import recipe_of
from workbench.places.host.recipe import PYTHON

_SHOWN = 12


def recipe_values(folder: Path, interpreter: Path, root: Path, remote_python: str) -> dict[str, str]:
    """Return what an agent's environment on other machines is made from, without building it.

    An interpreter that was named with `remote_python` is known by its path only. Call it in a thread: it reads files.
    """
    recipe = recipe_of(folder, interpreter, root, remote_python).recipe
    if recipe.kind == PYTHON:
        return {RECIPE: "--remote-python", REMOTE_PYTHON: recipe.path}
    return {RECIPE: f"{recipe.kind} {recipe.digest[:_SHOWN]}"}
