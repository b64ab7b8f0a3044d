"""The steps of a run: what a step reports, who makes it, and the checks of its numbers."""
