"""The rollout of a change over selected clusters, for works and add-ons."""
