"""What is wrong with a project of evalsets and criteria, found before it costs a run; nothing is run for it."""
