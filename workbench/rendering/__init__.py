"""Rendering of data as styled lines: pure functions without Textual, for the screen and for plain output."""
