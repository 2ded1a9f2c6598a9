"""Suppressor variables: do methods credit a feature that carries no information about the class?"""
