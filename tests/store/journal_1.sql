-- A file as the first format left it: not to be edited, whatever comes later.
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
CREATE TABLE blobs (
    id BLOB NOT NULL PRIMARY KEY,
    used_at INTEGER NOT NULL,
    -- The room it is taken to need.
    size INTEGER NOT NULL,
    body BLOB NOT NULL
);

CREATE INDEX blobs_by_use ON blobs (used_at, id, size);

INSERT INTO blobs VALUES (
    x'9ffdbce9018b85da1ca4c58ad082ba682b38f063f8cb082f29c2168f98168ff8',
    1000,
    120,
    x'28b52ffd0458390000636f6e74656e74fca9c531'
);

PRAGMA user_version = 1;
