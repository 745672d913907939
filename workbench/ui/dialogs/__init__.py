"""Dialogs shared by all screens, and a base of dialogs with rows."""
