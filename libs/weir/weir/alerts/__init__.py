"""Alerts: what a rule makes of the windows of a series. Pure: no clock, no I/O.

    machine.py   one series through ok, pending, firing, recovering, window by window
    step.py      state, observation -> state, transitions: provisional, corrected, told
    watch.py     a rule over panes: what it must be given, and what it makes of it
    words.py     what messages say
    messages.py  which messages follow from a change, and who gets them
    records.py   what weir.alerts holds; fold.py reads it, from its start or after a restart

Start with `machine.py`.
"""
