"""Configuration spaces: retractions, local coordinates, rotations and groups as CasADi
expressions.
"""
