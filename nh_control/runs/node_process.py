"""What the nodes' processes and those who start them agree on."""

PARENT = "NH_CONTROL_PARENT"
"""Environment variable with the process number of whoever starts nodes that must not outlive
it.
"""
WRONG_USE = 2
"""Exit code of a node that cannot start with what it was given."""
STEP_FAILED = 3
"""Exit code of a plant that could not make a step, and was not asked to stay."""
NOT_RECORDED = 4
"""Exit code of a recorder that could not write all that came."""
