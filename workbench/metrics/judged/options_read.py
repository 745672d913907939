"""The options of a judged criterion, as it uses them."""

from typing import Any

from workbench.judge.base import Judge
from workbench.judge.options import read_judge_options
from workbench.metrics.base import Bench, NotScorableError
from workbench.metrics.options import read_flag
from workbench.model.criteria import Criterion


def judge_of(criterion: Criterion, bench: Bench) -> Judge:
    """The judge that the criterion names.

    Raises:
        NotScorableError: the options are wrong.
        NotAvailableError: it cannot be asked here.
    """
    try:
        options = read_judge_options(criterion.options.get("judge_model_options") or {})
    except ValueError as error:
        raise NotScorableError(f"{criterion.name}: judge_model_options: {error}") from error
    return bench.judge(options)


def flag(criterion: Criterion, name: str) -> bool:
    """A yes or no of the criterion, no where it is not given.

    Raises:
        NotScorableError: it is neither.
    """
    value: Any = criterion.options.get(name, False)
    try:
        return read_flag(value)
    except ValueError as error:
        raise NotScorableError(f"{criterion.name}: {name}: {error}") from error
