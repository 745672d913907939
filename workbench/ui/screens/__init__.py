"""The main screen and what opens on top of it."""
