"""Runs, executed in a thread beside the screen: start, events, cancel."""
