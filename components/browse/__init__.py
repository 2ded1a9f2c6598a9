"""Lists of a data set's examples, texts or pictures: their rows, filters, stored results, and how one walks them."""
