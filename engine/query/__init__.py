"""Questions in plain English: a small grammar turns a sentence into one operation, its slots and commands.

`grammar` is the table of forms and words, `names` finds models, methods, data sets, classes and examples in a sentence,
`parser` matches it with the table, and `command` fills in missing slots and writes the commands.
"""

from engine.query.command import QueryCommand, QueryContext, commands_of, complete, notes_of, sentence_of
from engine.query.grammar import OPERATIONS, ParsedQuery
from engine.query.parser import NotUnderstood, nearest_forms, parse, sample_sentences, write_sentence

__all__ = [
    "OPERATIONS",
    "NotUnderstood",
    "ParsedQuery",
    "QueryCommand",
    "QueryContext",
    "commands_of",
    "complete",
    "nearest_forms",
    "notes_of",
    "parse",
    "sample_sentences",
    "sentence_of",
    "write_sentence",
]
