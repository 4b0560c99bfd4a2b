"""Common Expression Language with Kubernetes' extensions: parser, type checker, cost estimate, evaluation."""
