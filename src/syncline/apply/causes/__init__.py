"""Why single objects of a cluster are not healthy: pods, workloads, claims, Services, and any kind by its health."""
