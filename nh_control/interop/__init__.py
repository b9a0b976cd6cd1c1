"""Discrete systems for other programs: C code, PyTorch, JAX and LaTeX."""
