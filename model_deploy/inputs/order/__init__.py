"""Which example comes when: epochs, shards of replicas, random numbers of an example."""
