"""The base of every node: its process, the inbox of its thread, its parameters, and
their model.
"""
