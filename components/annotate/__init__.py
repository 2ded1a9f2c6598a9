"""The page on which people take part in a study."""
