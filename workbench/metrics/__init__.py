"""One module a criterion, and the registry with what a user must know of each."""
