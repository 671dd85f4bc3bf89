"""Weir's shared core: the shapes that cross a boundary, and their laws.

Pure Python without I/O: nothing here opens a socket or a file, reads a clock,
or imports a service. `tests/test_imports.py` in the repository's root holds that.
"""
