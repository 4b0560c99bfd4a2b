"""A pattern installed in virtual time: what was installed when, who waited for what, and what could not be made."""
