"""The other processes of a cluster: joining them, waiting for them, noticing that one is lost."""
