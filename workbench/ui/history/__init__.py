"""Runs that are kept, on the screen: the list, one of them, and two of them side by side."""
