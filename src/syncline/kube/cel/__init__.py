"""Common Expression Language, as Kubernetes speaks it: parsed, type-checked, its cost estimated, evaluated."""
