"""The content of ApplicationReports, as agents write it and the hub reads it."""
