"""What every process of Weir has: settings from outside, logs, probes.

    settings.py   the settings that all have, how all of them are read, secrets as files
    logs.py       one JSON line an event
    probes.py     /livez, /readyz and /metrics on a port of their own

Nothing here knows what a service does.
"""
