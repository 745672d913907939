"""Dialogs that every screen uses."""
