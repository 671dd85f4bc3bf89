"""`weir send`: what an input holds, as events, to ingest: each at least once, and with one id.

entries.py      an input cut into entries, each with its exact place
rows.py         CSV cut into rows, each of which may go over several lines
tables.py       a row of CSV as an event
ndjson.py       a line of JSON as an event
fields.py       what columns and groups come to
access.py       a line of an access log as an event
guessing.py     which of these an input is
identity.py     the id of an event that has none of its own
inputs.py       files and standard input, also compressed
resuming.py     how far an input is confirmed, in a file
posting.py      one request to ingest, and what its answer means
pacing.py       how many events may go now, and how long to wait
batching.py     entries gathered into batches
sender.py       the loop: batch, request, confirmed
account.py      what became of everything
progress.py     the line on a terminal while it goes on
running.py      a run: one input after the other
asked.py        what the command line asks for, checked before anything is sent
"""
