"""From a save to what it could have changed: changes of files, their impact on cases, and what is to be done."""
