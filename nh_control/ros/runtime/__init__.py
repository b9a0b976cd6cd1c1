"""The base of every node: its process, the inbox of its working thread, its parameters, and the
model that the parameters select.
"""
