"""The other processes of a cluster: joining them, waiting for them, detecting lost ones."""
