"""Optimal control by a primal-dual interior point on native steps: `interior_point` (whole
trajectories), `mpc` (tracking), `transcription` (the problem as native functions), `layout` (its
record in C).
"""
