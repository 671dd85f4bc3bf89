"""The job `panes`: one micro-batch is a pure function from a range of the log to parts."""
