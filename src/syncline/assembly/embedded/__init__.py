"""The embedded cluster, served: its API, who works in it, audit, measures."""
