"""The `weir` command. It knows the public HTTP API and nothing else of an installation.

__main__.py   the command line: one parser, a command each
commands/     a file for each command
api.py        one request to the dashboard, patient where that helps
files.py      definitions as they stand in files
"""
