"""A home folder as an earlier revision wrote it, as SQL, and the program that wrote it."""
