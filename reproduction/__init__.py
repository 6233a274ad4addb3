"""Reruns of the paper's experiments with figures and verdicts, and the lending game."""
