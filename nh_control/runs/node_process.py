"""Names and codes that node processes share with the processes that start them."""

PARENT = "NH_CONTROL_PARENT"
"""Environment variable with the process ID of the program that started the nodes. The nodes exit
when that program exits.
"""
WRONG_USE = 2
"""Exit code of a node that cannot start with its parameters."""
STEP_FAILED = 3
"""Exit code of a plant that could not take a step, unless it was told to keep running."""
NO_ANSWER = 5
"""Exit code of a plant that no controller answered within the time `answer_timeout_s`."""
CONTROLLER_FAILED = 6
"""Exit code of a tracker whose controller failed in the user's file."""
NOT_RECORDED = 4
"""Exit code of a recorder that could not write all messages."""
