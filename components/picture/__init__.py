"""Pictures: what is looked at, maps of patches, the Images page."""
