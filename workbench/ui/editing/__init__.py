"""The editor of cases and evalsets."""
