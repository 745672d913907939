"""Forks on the screen: the dialog that chooses a change, and the tries compared with the original."""
