"""The Application controller: one application, one cluster. Start at ``gitops/application/plan.py``."""
