"""Services, their endpoints and the services that serve APIs."""
