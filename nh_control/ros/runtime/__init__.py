"""What every node runs on: its process, the inbox of its thread, parameters, the model they ask
for.
"""
