"""One case from its first message to its verdict."""
