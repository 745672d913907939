"""Questions for judges: one module per question, with its text and the JSON schema of the answer."""
