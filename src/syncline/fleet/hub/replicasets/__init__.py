"""ManifestWorkReplicaSets: one ManifestWork for each selected cluster."""
