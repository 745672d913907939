"""The watch: changes of files, their impact on cases, and the work that follows."""
