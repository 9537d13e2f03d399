"""The part that runs in the user's interpreter: starts the user's program, measures it, tells what it cost.

Nothing is imported here: torch may be missing, and the process that only relays messages needs no more than it uses.
"""
