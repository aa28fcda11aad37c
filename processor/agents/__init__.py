"""Faust agents."""
