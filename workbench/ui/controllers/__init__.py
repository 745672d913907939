"""Controllers of the main screen. Each owns the state of one concern and the actions that change it.

An action is a row in `workbench/actions/main_screen.py`. It names a controller and the method there.
Controllers know the screen through `View` only, so tests drive them without a terminal.
"""
