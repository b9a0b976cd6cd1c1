"""Numerical tools that know nothing of mechanics: Newton's method, compiled functions,
progress.
"""
