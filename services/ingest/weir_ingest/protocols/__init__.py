"""One file for each way in which clients write events."""
