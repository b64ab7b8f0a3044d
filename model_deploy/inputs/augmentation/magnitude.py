"""The scale of RandAugment's magnitude."""

LARGEST_MAGNITUDE = 10
