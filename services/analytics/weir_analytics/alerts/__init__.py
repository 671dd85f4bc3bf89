"""The job `alerts`: watches rules, records what changes, tells channels. Start with app.py."""
