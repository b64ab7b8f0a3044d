"""The steps of a run: who makes them, what they report, and checks of their numbers."""
