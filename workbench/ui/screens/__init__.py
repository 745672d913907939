"""The main screen: layout, controllers and movement keys."""
