"""The criteria editor, a form for one or more configs."""
