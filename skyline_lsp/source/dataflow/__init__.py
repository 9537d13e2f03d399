"""Follows a program from its first statement without running it, to where its model is fed.

`interpreter.Run` is the entry; `statements`, `expressions`, `calls` and `imports` are Python itself; `values`,
`objects`, `operators` and `containers` what it computes with; `library` and what it gathers are the world outside the
project.
"""
