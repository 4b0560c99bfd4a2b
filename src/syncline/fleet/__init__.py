"""A hub and its clusters: registration, placement, works. The kinds and words are those of Open Cluster Management."""
