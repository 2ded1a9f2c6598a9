"""How the study's tables came to be, a step a file."""
