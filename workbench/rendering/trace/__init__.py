"""The pane "Trace": what took how long, what was asked and answered, and which path was taken."""
