"""Names and codes that processes of nodes share with the processes that start them."""

PARENT = "NH_CONTROL_PARENT"
"""Environment variable with the process number of the program that started the nodes: they end
with it.
"""
WRONG_USE = 2
"""Exit code of a node that cannot start with its parameters."""
STEP_FAILED = 3
"""Exit code of a plant that could not make a step, unless it was asked to stay."""
NOT_RECORDED = 4
"""Exit code of a recorder that could not write all messages."""
