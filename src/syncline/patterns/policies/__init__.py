"""Policies of Open Cluster Management: propagated on the hub (``hub/``), evaluated on each cluster (``cluster/``)."""
