"""The query bar: a question in plain English, what was understood, its command and the page that answers it."""
