"""Alerts: what a rule makes of the windows of a series. Pure: no clock, no I/O.

    machine.py   one series through ok, pending, firing, recovering, window by window
    step.py      state, observation -> state, transitions: provisional, corrected, told

Start with `machine.py`.
"""
