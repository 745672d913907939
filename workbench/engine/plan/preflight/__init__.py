"""One look at a plan before its first case: what will not be evaluated and the line that would change that, who judges
and where, which criteria have nothing to judge, and how many calls are to come.

Nothing is asked and nothing is imported for it; one cause is one notice, however many cases it has.
"""
