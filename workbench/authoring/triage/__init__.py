"""What the user says of verdicts, kept beside the evalset, and how far judges agree with it."""
