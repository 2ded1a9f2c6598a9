"""The page for participants of a study: `page` draws it, `api` serves the same ballots over HTTP."""
