"""Checks of a plan before its first case.

They find criteria that will not be evaluated and the line that would change that, the judges and their addresses,
criteria that have nothing to judge, and the number of expected calls. The checks ask nobody and import nothing. One
cause is one notice, however many cases it affects.
"""
