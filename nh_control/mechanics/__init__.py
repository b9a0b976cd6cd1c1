"""Systems as users declare them, and their continuous equations of motion."""
