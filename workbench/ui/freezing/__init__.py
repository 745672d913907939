"""Freezing on the screen: the dialog that shows what is written, and the choices if a replay failed."""
