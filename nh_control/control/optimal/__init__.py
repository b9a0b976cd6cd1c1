"""Optimal control by a primal-dual interior point method with native steps: `interior_point`
(whole trajectories), `mpc` (tracking), `transcription` (the problem as native functions) and
`layout` (the C struct of the problem).
"""
