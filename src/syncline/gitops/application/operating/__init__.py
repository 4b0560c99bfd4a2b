"""An operation of an Application: when it begins, what it waits for, how it ends."""
