"""The editor of cases and evalsets: its screen and dialogs, saving and undo."""
