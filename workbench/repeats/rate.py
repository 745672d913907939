"""How often a case passed: apart from what explains it, for every row of the screen shows it before anything else."""

from collections.abc import Iterable

from workbench.rates import PassRate, counts, pass_rate
from workbench.store import CaseRecord


def rate_of(records: Iterable[CaseRecord]) -> PassRate:
    """How often a case passed, of its executions."""
    counted = [record for record in records if counts(record.state, record.brief_error)]
    return pass_rate(sum(record.state == "passed" for record in counted), len(counted))
