"""Text for people: safe for terminals, numbers with nouns, ASCII signs. Also JSON values and the garbage collector."""
