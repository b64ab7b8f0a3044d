"""Conformance of the networks to the reference numbers."""
