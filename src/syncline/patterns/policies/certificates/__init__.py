"""CertificatePolicies on their cluster: which certificates expire, live too long or name what they may not."""
