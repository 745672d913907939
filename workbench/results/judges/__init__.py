"""The pane "Judges": each criterion with its score, its votes, and the questions and replies word for word."""
