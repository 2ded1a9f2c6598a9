"""Words and patches that matter over a whole data set: the experiment `corpus`."""
