"""Controllers of Services, their endpoints and APIServices."""
