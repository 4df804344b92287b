"""What modules see of the parser."""
