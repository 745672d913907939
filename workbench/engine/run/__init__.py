"""One run: its order, its record, and every way it can end."""
