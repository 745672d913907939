"""Evalsets, criteria configs and invocations as typed values, read together with their places in the file.

Nothing here runs anything.
"""
