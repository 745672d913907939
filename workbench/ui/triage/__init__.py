"""What the user says of verdicts, on the screen."""
