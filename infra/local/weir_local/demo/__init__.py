"""The demo's feeder: real requests of a web server, and this machine's own figures.

Both go through the public HTTP API, as anybody's events would.
"""
