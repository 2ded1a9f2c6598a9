"""Data sets of others in the formats in which they were released: found by their files, read as they are."""
