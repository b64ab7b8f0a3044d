"""Tests that need processes of their own, and what starts and watches those."""
