"""The `weir` command. It knows the public HTTP APIs and nothing else of an installation.

__main__.py     the command line: one parser, a command each
commands/       a file for each command
options.py      what commands have in common: address, key, files
api.py          one request to the dashboard, patient where that helps
files.py        definitions as they stand in files
following.py    a job, followed to its end
watched.py      what `top` knows: a fold of the live socket's frames
screen.py       what `top` shows
live.py         the live socket, followed, and the terminal
sending/        what `send` sends: an input, entry by entry
completing.py   completion of shells, made from the parser
telling.py      what is written, and where
"""
