"""Models on a given graph: NaiveMLE, CollectiveEM, CollectiveMAP, PrivateSGD."""
