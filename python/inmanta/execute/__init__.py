"""What modules see of the running model."""
