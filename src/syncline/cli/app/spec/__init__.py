"""Commands that create an Application or change its spec."""
