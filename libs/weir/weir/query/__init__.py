"""The query engine: panes in, windows with bounds and state out."""
