"""The client of a goal, in tests without a node."""


class Observer:
    """Keeps what it hears: steps of a leg that is followed, and reasons of an end."""

    def __init__(self):
        self.heard = []

    def accepted(self, leg):
        self.heard.append((leg.start, leg.end))

    def ended(self, kind, reason):
        self.heard.append((kind, reason))
