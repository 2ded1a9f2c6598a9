"""Blind studies: people rank unnamed explanations, or guess with their help, and the methods are rated.

Preparation: `design`, `items`, `edits`, `studies`. Voting: `annotators`, `ballots`. Analysis: `counted_votes`,
`ratings`, `summary`, `guesses`, `results`. Storage: `database`, `access`. Exchange: `study_file`. Planning:
`simulation`.
"""
