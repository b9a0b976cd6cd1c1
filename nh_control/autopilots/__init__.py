"""Flight controllers in the loop: their protocols, sensors and frames, and a plant that they
fly.
"""
