"""The nodes: plant, tracker, display, recorder and shadow, and their executables."""
