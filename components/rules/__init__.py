"""The page that tests rules about a model."""
