"""Images that a pool's machines pull in advance and keep."""
