"""The state shared by all screens, without widgets: the open folder, verdicts, and options of the next runs."""
