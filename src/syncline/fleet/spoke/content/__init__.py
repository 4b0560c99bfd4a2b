"""Rendered content on its way onto the cluster, and for which key and versions it is made."""
