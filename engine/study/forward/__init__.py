"""Forward simulation: do people who see an explanation guess the model's answer better than without one?"""
