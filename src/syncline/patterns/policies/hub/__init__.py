"""On the hub: which clusters get a policy, their copies of it, and what they report."""
