"""Jobs: work that is asked for once and done between live batches; `runner.py` first."""
