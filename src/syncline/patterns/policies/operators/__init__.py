"""OperatorPolicies on their cluster: what OLM shall install or lack, in upstream's words."""
