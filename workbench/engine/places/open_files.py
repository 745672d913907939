"""How many files this process may have open."""

import resource


def allow_open_files(count: int) -> None:
    """Raises this process's limit of open files where it is lower (256 on macOS): a case has a socket and two pipes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
