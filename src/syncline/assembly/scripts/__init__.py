"""Scripts and expressions of users in a process of their own."""
