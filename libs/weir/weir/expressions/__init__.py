"""The small typed language of `where`, `value` and `by`."""
