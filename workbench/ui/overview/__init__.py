"""The overview on the right side: the cases of a row, a filter or marks, with causes, changes and costs."""
