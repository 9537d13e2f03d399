"""The language server: sessions, settings, scheduling, the worker's client, and all that knows pygls.

The command line shares the parts that don't; they are imported from their modules, so that it need not load pygls.
"""


def serve_stdio() -> int:
    """Serve one client on standard input and output; the exit code. Nothing else may use them from then on."""
    from skyline_lsp.server.app import Server
    from skyline_lsp.server.transport import serve_stdio as serve

    return serve(lambda: Server().protocol)


def serve_tcp(host: str = "127.0.0.1", port: int = 0) -> int:
    """Serve clients on a TCP port until one says `exit`; the exit code. The address is written to standard error."""
    from skyline_lsp.server.app import Server
    from skyline_lsp.server.transport import serve_tcp as serve

    return serve(host, port, lambda: Server().protocol)
