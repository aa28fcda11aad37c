"""Reads what went in and what came out, and trusts nothing of the code between."""
