"""What modules see of the server, which is no part of this package."""
