"""Forks on the screen: the dialog that chooses a change, and the tries beside the original."""
