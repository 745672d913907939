"""The user's triage of verdicts, stored beside the evalset, and agreement of judges with it."""
