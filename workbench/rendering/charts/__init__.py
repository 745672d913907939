"""Figures of many cases at a glance: on the screen, and for the page that is handed on."""
