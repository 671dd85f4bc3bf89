"""Definitions: their kinds, their check, and the fold of their changes."""
