"""Find agents without running them; the worker that runs one."""
