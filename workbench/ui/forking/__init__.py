"""Forks on the screen: the dialog for choosing a change, and the tries compared with the original."""
