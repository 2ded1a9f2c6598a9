"""The page on which people take part in a study: `page` draws it, `api` serves the same ballots over HTTP."""
