"""Evalsets, criteria configs and invocations as typed values, read together with their places in the file.

This package only reads and never runs code.
"""
