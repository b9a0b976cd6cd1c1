"""Closed-loop runs of scenarios and their results: simulations, recordings, summaries."""
