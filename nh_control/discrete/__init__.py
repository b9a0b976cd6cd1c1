"""Discrete steps: the residual and read-out, their exact derivatives, and trajectories."""
