"""The nodes: plant, tracker, display and recorder, and their executables."""
