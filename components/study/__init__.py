"""The page on which an organizer designs studies, opens them, sends their links and follows them."""
