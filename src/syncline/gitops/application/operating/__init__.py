"""The operation of an Application: when it begins, what it waits for and how it ends."""
