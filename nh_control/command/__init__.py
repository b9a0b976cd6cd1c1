"""The commands of `nh_control`, one per file, and their arguments."""
