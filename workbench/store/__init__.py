"""The store: events go in, and the state of runs and cases comes out, now or later."""
