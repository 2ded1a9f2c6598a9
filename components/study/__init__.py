"""The page on which an organizer designs and opens studies, shares their links, and follows their progress."""
