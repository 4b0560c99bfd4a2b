"""The inputs of an Application's reconcile, and the requests that must be answered first."""
