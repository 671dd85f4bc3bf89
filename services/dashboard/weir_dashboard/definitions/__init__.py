"""Definitions: following their topic, folding it, writing to it."""
