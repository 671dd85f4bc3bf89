"""The live hub: sockets, subscriptions, feeds, heartbeats."""
