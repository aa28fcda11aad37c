"""Hypothesis profiles: few examples while one works, more and the same ones each time in CI."""

import os

from hypothesis import settings

# No deadline: on a shared machine it fails laws that hold.
settings.register_profile("dev", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=300, derandomize=True, print_blob=True)
# Chosen by pytest --hypothesis-profile.
settings.register_profile("fuzz", deadline=None, max_examples=5_000, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "dev")
