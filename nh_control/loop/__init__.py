"""The closed loop of a plant and a tracker: timing, order and validity of steps and commands;
changes to the reference; faults, sensors, estimates and reports. Runs in one process and ROS nodes
share this loop and differ only in their transport.
"""
