"""The role of Validated Patterns: installs Patterns, and runs the instances that ArgoCD objects ask for."""
