"""Lists of a data set's texts or pictures: their rows, filters, stored results, and navigation."""
