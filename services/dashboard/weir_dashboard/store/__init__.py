"""What the dashboard reads from Redis: batches, panes, names, heartbeats, the tail."""
