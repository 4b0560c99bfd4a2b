"""How commands are found, called and answered."""
