"""The base of every node: its process, the inbox of its thread, parameters, the model they ask
for.
"""
