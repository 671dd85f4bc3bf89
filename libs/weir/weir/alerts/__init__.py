"""Alerts: what a rule makes of the windows of a series. Pure: no clock, no I/O.

    machine.py   one series through ok, pending, firing, recovering, window by window
    step.py      state, observation -> state, transitions: provisional, corrected, told
    watch.py     a rule over panes: what it must be given, and what it makes of it
    words.py     what messages say

Start with `machine.py`.
"""
