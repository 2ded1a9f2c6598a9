"""Questions in plain English: a small grammar turns a sentence into one operation with its slots.

`grammar` is the table of forms and words, `names` finds models, methods, data sets, classes and examples in a sentence,
and `parser` matches it with the table.
"""

from engine.query.grammar import FORMS, OPERATIONS, ParsedQuery
from engine.query.parser import NotUnderstood, nearest_forms, parse

__all__ = ["FORMS", "OPERATIONS", "NotUnderstood", "ParsedQuery", "nearest_forms", "parse"]
