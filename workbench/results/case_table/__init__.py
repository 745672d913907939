"""Tables with a row for each case: columns, cells and their order. The screen and the HTML export show them."""
