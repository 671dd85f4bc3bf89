"""Runs the whole of Weir on one machine: real Kafka, real Redis, the three services."""
