"""What an agent did becomes what is expected of it: the differences to choose from, and the change in the file."""
