"""Analytics: the jobs that count the log."""
