"""What took how long in a conversation: spans read as a tree, what was asked and answered, and the path taken."""
