"""How messages leave: one module a way. `sender.py` chooses; start there."""
