"""The file of the local directory: its tables, and how it is opened.

    agents  one row an agent: its record's frame, its card, when it was heard and until when it counts
    words   what each is found by, as terms.py says; terms: how many agents hold each word
    vectors one row an agent with a vector          both follow when an agent's row is deleted

WAL without a sync a commit: a crash of the machine may lose the last rows, never the file.
Source: https://sqlite.org/fts5.html, https://sqlite.org/fts5.html#the_fts5vocab_virtual_table_module
"""

import sqlite3
from pathlib import Path

from ioa_p2p.errors import StorageError
from ioa_p2p.storage.database import storage_error, storage_errors
from ioa_p2p.wire import limits

SCHEMA_VERSION = 1
_APPLICATION_ID = 0x696F6163  # "ioac" in the file's header

# tokenize ascii: words.py has cut the texts already, and whatever is not ASCII belongs to a word.
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE agents (
    id INTEGER PRIMARY KEY, node BLOB NOT NULL, agent TEXT NOT NULL, seq INTEGER NOT NULL, gone INTEGER NOT NULL,
    heard REAL NOT NULL, until REAL NOT NULL, trust INTEGER NOT NULL, size INTEGER NOT NULL DEFAULT 0,
    hash BLOB NOT NULL, frame BLOB NOT NULL, card BLOB, UNIQUE (node, agent)
);
CREATE INDEX by_worth ON agents (trust, heard, size);
CREATE INDEX by_heard ON agents (heard);
CREATE INDEX by_until ON agents (until);
CREATE INDEX by_hash ON agents (hash);
CREATE TABLE vectors (id INTEGER PRIMARY KEY, model TEXT NOT NULL, vector BLOB NOT NULL);
CREATE VIRTUAL TABLE words USING fts5 (text, keys, tokenize = 'ascii');
CREATE VIRTUAL TABLE terms USING fts5vocab (words, 'row');
CREATE TRIGGER forgotten AFTER DELETE ON agents BEGIN
    DELETE FROM words WHERE rowid = old.id;
    DELETE FROM vectors WHERE id = old.id;
END;
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""


def is_broken(fault: StorageError) -> bool:
    """Whether the file is of no use any more, so that it may be set aside and begun anew."""
    return fault.code in ("damaged", "unreadable")


def set_aside(path: Path) -> Path:
    """Rename a broken file, in the place of one that broke before; its new path. What its WAL held is lost."""
    aside = path.with_name(f"{path.name}.damaged")
    with storage_errors(path):
        path.replace(aside)
        for suffix in ("-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
    return aside


def _refuse_newer(connection: sqlite3.Connection, path: Path) -> None:
    """Before anything is written: a newer program that comes back finds its file as it was."""
    (application,), (version,) = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    if application == _APPLICATION_ID and version > SCHEMA_VERSION:
        what = f"{path} has version {version}, this program reads {SCHEMA_VERSION}"
        raise StorageError("newer-file", what, "update this program, or give the newer one its own folder")


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=1.0, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def open_writer(path: Path) -> sqlite3.Connection:
    """The writer's connection, the schema made or checked."""
    connection = connect(path)
    try:
        connection.row_factory = sqlite3.Row
        _refuse_newer(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA journal_size_limit = {limits.CATALOGUE_WAL_BYTES_MAX}")
        ((tables,),) = connection.execute("SELECT count(*) FROM sqlite_master")
        if not tables:
            connection.executescript(_SCHEMA)
        ((application,), (version,)) = (
            connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        if (application, version) != (_APPLICATION_ID, SCHEMA_VERSION):
            raise storage_error("damaged", path, f"no directory of version {SCHEMA_VERSION}")
    except BaseException:
        connection.close()
        raise
    return connection
