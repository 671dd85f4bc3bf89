"""Readers of what the engine and others wrote, for every service that serves or watches it.

    follower.py ─▶ catalog.py   definitions and activations, from Kafka
    appender.py                 the other end of a topic of one partition
    batches.py                  how far counting has come, from the stream of batch records
    facts.py                    the same, as queries and rules are told it
    panes.py                    panes and the names of their series, cached
    parts.py                    heartbeats: who runs, and this process's own

`served.py` says which versions of a metric serve which of its panes. All of it lives on
one event loop; nothing here decides anything that `weir` could decide.
"""
