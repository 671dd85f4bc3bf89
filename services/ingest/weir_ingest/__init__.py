"""Ingest: HTTP in, Kafka out."""
