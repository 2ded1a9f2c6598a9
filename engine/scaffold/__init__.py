"""Scaffold-maximizing training (SMaT): explainers that learn to teach, and students that evaluate any explainer.

Source: Fernandes et al. (2022), Learning to scaffold: optimizing model explanations for teaching.
"""
