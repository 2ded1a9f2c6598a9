"""The query bar: a question in plain English, its interpretation, the command, and the page that answers it."""
