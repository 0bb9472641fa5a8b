"""Direct search of policies with few weights, by whole days."""
