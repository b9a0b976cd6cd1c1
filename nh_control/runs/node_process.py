"""Names and codes that processes of nodes share with the processes that start them."""

PARENT = "NH_CONTROL_PARENT"
"""Environment variable with the process number of whoever starts nodes that must not outlive
it.
"""
WRONG_USE = 2
"""Exit code of a node that cannot start with its parameters."""
STEP_FAILED = 3
"""Exit code of a plant that could not make a step, and was not asked to stay."""
NOT_RECORDED = 4
"""Exit code of a recorder that could not write all that came."""
