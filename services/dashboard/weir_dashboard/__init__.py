"""Dashboard: the query API, the live hub and the user interface."""
