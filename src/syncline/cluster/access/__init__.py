"""Authentication, authorization and audit of requests."""
