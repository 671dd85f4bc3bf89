"""Dashboard: the query API, the live hub and the user interface."""

__version__ = "0.1.0"
