"""Blind studies: people rank explanations that have no names, or guess with them, and the methods are rated.

Before: `design`, `items`, `studies`. While it is open: `annotators`, `ballots`. Afterwards: `counted_votes`, `ratings`,
`summary`, `guesses`, `results`. Underneath: `database`, `access`. Elsewhere: `study_file`. For planning: `simulation`.
"""
