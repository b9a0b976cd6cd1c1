"""Systems as users write them, and the equations of motion that follow without a step."""
