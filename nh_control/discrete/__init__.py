"""A step: residual and read-out, their exact derivatives, and trajectories made of steps."""
