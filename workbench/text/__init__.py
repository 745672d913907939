"""Text for people: safe text for terminals, numbers with nouns, ASCII signs, and readers of JSON values."""
