"""The closed loop of a plant and a tracker: time, order and validity of steps and commands,
changes of the reference, faults, sensors, estimates and reports. A run in one process and the
nodes are its transports.
"""
