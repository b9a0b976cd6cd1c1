"""The logic of the nodes in plain Python, free of ROS: run loop, clock, pacing, checks of
commands, reports.
"""
