"""Checks of a plan before its first case.

They find criteria that will not be evaluated and the line that would change that, the judges and their addresses,
criteria without anything to judge, and the number of expected calls. The checks call no judge and import nothing. One
cause is one notice, however many cases it affects.
"""
