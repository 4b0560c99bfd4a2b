"""The config server: what a machine that joins asks for before it is a node, answered from a pool's rendered config."""
