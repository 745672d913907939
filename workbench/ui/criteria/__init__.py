"""The form of a criteria config: its screen and what is on it."""
