"""Dialogs that all screens use."""
