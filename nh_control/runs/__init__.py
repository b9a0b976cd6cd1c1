"""Closed-loop runs of scenarios and what comes of them: simulations, recordings, summaries."""
