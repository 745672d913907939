"""Text for people: the only way to a terminal, numbers, and values in JSON."""
