"""A report as tables of an SQLite database: run times and activations by call path, weights, the iteration, its peak.

docs/reports.md describes the schema for those who query it. Depends on the standard library's sqlite3.
"""

import sqlite3
from collections.abc import Iterator
from typing import Any

from skyline_lsp.protocol import Profile
from skyline_lsp.reports.report import Report

SCHEMA_VERSION = 1
"""Changes when a table or a column changes its meaning or goes; stands in `PRAGMA user_version`, too."""

APPLICATION_ID = 0x534B594C
""""SKYL": by it a database of ours is known."""

_MAGIC = b"SQLite format 3\x00"
_APPLICATION_ID_AT = 68
"""Offset in the file's header (https://www.sqlite.org/fileformat.html)."""

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE iteration (
    run_time_ms REAL NOT NULL, spread_ms REAL NOT NULL, iterations INTEGER NOT NULL,
    samples_per_second REAL NOT NULL, peak_bytes INTEGER NOT NULL, untracked_ms REAL NOT NULL
);
CREATE TABLE iteration_times (position INTEGER PRIMARY KEY, run_time_ms REAL NOT NULL);
CREATE TABLE phases (position INTEGER PRIMARY KEY, phase TEXT NOT NULL, run_time_ms REAL NOT NULL);
CREATE TABLE peak_memory (class TEXT PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE memory_timeline (position INTEGER PRIMARY KEY, time_ms REAL NOT NULL, live_bytes INTEGER NOT NULL);
CREATE TABLE run_time_entries (
    id INTEGER PRIMARY KEY, operation TEXT NOT NULL, path TEXT NOT NULL, line INTEGER NOT NULL,
    forward_ms REAL NOT NULL, backward_ms REAL, recompute_ms REAL NOT NULL, invocations INTEGER NOT NULL,
    flop INTEGER NOT NULL, bytes_moved INTEGER NOT NULL, label TEXT
);
CREATE TABLE activation_entries (
    id INTEGER PRIMARY KEY REFERENCES run_time_entries (id), operation TEXT NOT NULL, path TEXT NOT NULL,
    line INTEGER NOT NULL, activation_bytes INTEGER NOT NULL, peak_bytes INTEGER NOT NULL
);
CREATE TABLE stack_frames (
    entry_id INTEGER NOT NULL REFERENCES run_time_entries (id), position INTEGER NOT NULL, path TEXT NOT NULL,
    line INTEGER NOT NULL, function TEXT NOT NULL, PRIMARY KEY (entry_id, position)
) WITHOUT ROWID;
CREATE INDEX stack_frames_by_line ON stack_frames (path, line);
CREATE TABLE weight_entries (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, weight_bytes INTEGER NOT NULL, gradient_bytes INTEGER NOT NULL
);
CREATE TABLE line_costs (
    path TEXT NOT NULL, line INTEGER NOT NULL, source TEXT,
    self_forward_ms REAL NOT NULL, self_backward_ms REAL NOT NULL, forward_ms REAL NOT NULL, backward_ms REAL NOT NULL,
    self_activation_bytes INTEGER NOT NULL, activation_bytes INTEGER NOT NULL, invocations INTEGER NOT NULL,
    self_flop INTEGER NOT NULL, flop INTEGER NOT NULL, PRIMARY KEY (path, line)
) WITHOUT ROWID;
CREATE TABLE files (path TEXT PRIMARY KEY, sha256 TEXT NOT NULL) WITHOUT ROWID;
"""


def recognise_tables(head: bytes) -> bool:
    """Whether a file that begins so is a database that this module wrote."""
    identity = head[_APPLICATION_ID_AT : _APPLICATION_ID_AT + 4]
    return head.startswith(_MAGIC) and identity == APPLICATION_ID.to_bytes(4, "big")


def write_tables(connection: sqlite3.Connection, report: Report, skyline_version: str) -> None:
    """Fill an empty database, and commit."""
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.executescript(_SCHEMA)
    for table, rows in _tables(report, skyline_version):
        if rows:
            places = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)
    connection.commit()


Rows = list[tuple[Any, ...]]


def _tables(report: Report, skyline_version: str) -> Iterator[tuple[str, Rows]]:
    profile = report.profile
    iteration, memory = profile.iteration, profile.memory
    yield "meta", list(_meta(profile, skyline_version))
    yield (
        "iteration",
        [
            (
                iteration.run_time_ms,
                iteration.spread_ms,
                iteration.iterations,
                iteration.samples_per_second,
                iteration.peak_bytes,
                profile.untracked_ms,
            )
        ],
    )
    yield "iteration_times", list(enumerate(iteration.times_ms))
    yield "phases", [(at, phase.kind.value, phase.run_time_ms) for at, phase in enumerate(profile.phases)]
    yield (
        "peak_memory",
        [
            ("weights", memory.weights_bytes),
            ("gradients", memory.gradients_bytes),
            ("optimizer", memory.optimizer_bytes),
            ("activations", memory.activations_bytes),
            ("other", memory.other_bytes),
        ],
    )
    yield "memory_timeline", [(at, event.time_ms, event.live_bytes) for at, event in enumerate(profile.timeline)]
    yield "run_time_entries", [_run_time_entry(report, at) for at in range(len(profile.tree))]
    yield "activation_entries", _activation_entries(report)
    yield "stack_frames", _stack_frames(profile)
    yield (
        "weight_entries",
        [(at, one.name, one.weight_bytes, one.gradient_bytes) for at, one in enumerate(profile.parameters)],
    )
    yield (
        "line_costs",
        [
            (
                cost.path,
                cost.line,
                report.source_line(cost.path, cost.line) or None,
                cost.self_forward_ms,
                cost.self_backward_ms,
                cost.forward_ms,
                cost.backward_ms,
                cost.self_activation_bytes,
                cost.activation_bytes,
                cost.invocations,
                cost.self_flop,
                cost.flop,
            )
            for cost in profile.lines
        ],
    )
    yield "files", list(profile.files.items())


def _meta(profile: Profile, skyline_version: str) -> Iterator[tuple[str, Any]]:
    yield "schema_version", SCHEMA_VERSION
    yield "skyline_version", skyline_version
    yield "torch_version", profile.torch_version
    yield "python_version", profile.python_version
    yield "program", profile.workload.path
    yield "program_kind", profile.workload.kind
    yield "batch_size", profile.batch_size
    yield "micro_batches", profile.micro_batches
    yield "device_kind", profile.device.kind
    yield "device_name", profile.device.name
    yield "device_memory_bytes", profile.device.memory_bytes
    yield "slowdown", profile.slowdown


def _operation(report: Report, at: int) -> str:
    """The module, where library code called one, else the text of the line, else where it is."""
    node = report.profile.tree[at]
    return node.module or report.source_line(node.path, node.line) or f"{node.path}:{node.line}"


def _run_time_entry(report: Report, at: int) -> tuple[Any, ...]:
    node = report.profile.tree[at]
    return (
        at,
        _operation(report, at),
        node.path,
        node.line,
        node.self_forward_ms,
        # None, as nothing of it ran in a backward pass; a time of zero would say that it was measured.
        node.self_backward_ms or None,
        node.recompute_ms,
        node.invocations,
        node.self_flop,
        node.self_bytes_moved,
        node.label,
    )


def _activation_entries(report: Report) -> Rows:
    return [
        (at, _operation(report, at), node.path, node.line, node.self_activation_bytes, node.peak_bytes)
        for at, node in enumerate(report.profile.tree)
        if node.self_activation_bytes or node.peak_bytes
    ]


def _stack_frames(profile: Profile) -> Rows:
    rows: Rows = []
    for entry in range(len(profile.tree)):
        at, position = entry, 0
        while at >= 0:
            node = profile.tree[at]
            # A module stands at the project line above it, which is the frame; it is none of its own.
            if node.module is None:
                rows.append((entry, position, node.path, node.line, node.function))
                position += 1
            at = node.parent
    return rows
