"""Operators on the embedded cluster: the role that does OLM's work, and the catalogues that an administrator names."""
