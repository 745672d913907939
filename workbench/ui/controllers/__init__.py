"""Controllers of the main screen: each owns the state of one concern and the actions that change it.

An action is a row in `workbench/actions/main_screen.py`. Its `by` names a controller, and its `id` the method there.
Controllers know the screen through `View` only, so tests drive them without a terminal.
"""
