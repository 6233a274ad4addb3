"""Stacks of networks and their training (torch)."""
