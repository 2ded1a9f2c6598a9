"""Blind studies: people rank explanations that have no names, or guess with them, and the methods are rated.

Before: `design`, `snapshot`, `studies`. While it is open: `annotators`, `assignment`, `ballots`, `votes`. Afterwards:
`counted_votes`, `rankings`, `ratings`, `summary`, `guesses`, `results`, `exports`. Underneath: `database`, `tables`.
"""
