"""What judges are asked: one module a question, with its text, the JSON schema of the answer, and its reader."""
