"""Editing cases and evalsets on the screen."""
