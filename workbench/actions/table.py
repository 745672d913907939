"""All actions as one table; what the footer shows of it."""

from collections.abc import Mapping

from workbench.actions.action import Action, Where
from workbench.actions.elsewhere import ELSEWHERE
from workbench.actions.main_screen import MAIN_SCREEN

ACTIONS: tuple[Action, ...] = (*MAIN_SCREEN, *ELSEWHERE)
BY_ID: Mapping[str, Action] = {action.id: action for action in ACTIONS}


def footer(where: Where = "main") -> list[Action]:
    """The actions that the footer shows, in its order."""
    return sorted((row for row in ACTIONS if row.footer and row.where == where), key=lambda row: row.footer)
