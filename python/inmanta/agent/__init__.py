"""What runs at an agent: handlers, their cache and their access to machines."""
