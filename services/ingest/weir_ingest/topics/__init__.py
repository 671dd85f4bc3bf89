"""The command that makes Weir's topics what an installation wants: `apply`.

plan.py decides, broker.py reads and changes, `__main__.py` is the command.
"""
