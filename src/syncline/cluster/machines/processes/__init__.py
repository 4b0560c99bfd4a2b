"""Run containers as sandboxed processes of the local machine."""
