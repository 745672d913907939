"""The pane "Trace": the steps of each turn with their times, requests, responses and path."""
