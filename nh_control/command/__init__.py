"""The commands of `nh_control`, one a file, and their arguments."""
