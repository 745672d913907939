"""Dialogs shared by all screens, and the bases of screens with a list."""
