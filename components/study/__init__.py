"""The organiser's pages of studies."""
