"""Numerical tools that do not depend on the mechanics: Newton's method, compiled functions,
progress.
"""
