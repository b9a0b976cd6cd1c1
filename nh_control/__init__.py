"""Structure-preserving simulation and control of mechanical systems: integrators, exact
linearizations, LQR, ROS 2 nodes.
"""
