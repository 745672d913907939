"""Which runs of the history a text lets through."""

from collections.abc import Sequence

from workbench.history.kept_runs import KeptRun

_STATUSES = {"pass": "passed", "fail": "failed", **{name: name for name in ("error", "not_evaluated", "cancelled")}}


class RunFilter:
    """Words must all stand in a run's id, time, agents, evalsets, commit or flags; `:fail`, `:error`, `:cancelled`: it
    has such cases, `:pass`: it has no others; any other `:word` is a flag (`:baseline`, `:adk`, `:interrupted`)."""

    def __init__(self, text: str) -> None:
        tokens = text.lower().split()
        self._words = [token for token in tokens if not token.startswith(":")]
        self._flags = [token[1:] for token in tokens if len(token) > 1 and token.startswith(":")]

    def lets_through(self, run: KeptRun, flags: Sequence[str]) -> bool:
        """Whether the run is shown."""
        if not self._words and not self._flags:
            return True
        text = " ".join([run.run_id, run.started, *run.agents, *run.files, run.commit, *flags]).lower()
        return all(word in text for word in self._words) and all(self._has(flag, run, flags) for flag in self._flags)

    def _has(self, flag: str, run: KeptRun, flags: Sequence[str]) -> bool:
        names = [status for word, status in _STATUSES.items() if word.startswith(flag)]
        if "passed" in names:
            return run.total > 0 and run.counts.get("passed", 0) == run.total
        if names:
            return any(run.counts.get(name) for name in names)
        return any(word.startswith(flag) for one in flags for word in one.split())
