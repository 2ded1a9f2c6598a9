"""Charts of an evaluation: pure builders, each with the table of what it draws."""
