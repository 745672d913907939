"""The pane "Evidence", which is also the page of a case in a review and the case in reports."""
