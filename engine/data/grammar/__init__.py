"""A small grammar of reviews: label and reasons follow from how a review is built, so they are exact."""
