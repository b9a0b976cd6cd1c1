"""The nodes (plant, tracker, display, view, recorder and shadow) and their executables."""
