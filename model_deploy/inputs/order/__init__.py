"""The order of examples: epochs, shards of replicas, random numbers per example."""
