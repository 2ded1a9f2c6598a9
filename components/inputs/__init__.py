"""Inputs that several pages share: data sets opened once, and the choice of model, data set and example."""
