"""What a command ends with."""

from __future__ import annotations

DONE = 0
REFUSED = 1
"""The dashboard refused something; the rest is done."""
USAGE = 2
"""The command line, a file or the key cannot be used; nothing was sent."""
UNREACHED = 3
"""The dashboard did not answer in time; what was told as done is done."""

EXPLAINED = f"""exit codes:
  {DONE}  all is as the files say
  {REFUSED}  the dashboard refused something; the rest is done
  {USAGE}  the command line, a file or the key cannot be used; nothing was sent
  {UNREACHED}  the dashboard did not answer in time; what was told as done is done"""


class UsageError(Exception):
    """Something that the caller gave cannot be used; the text says what and how to mend it."""
