"""Sanity checks (Adebayo et al., 2018): does an explanation change when what the model has learned is destroyed?"""
