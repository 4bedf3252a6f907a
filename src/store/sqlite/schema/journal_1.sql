CREATE TABLE blobs (
    id BLOB NOT NULL PRIMARY KEY,
    used_at INTEGER NOT NULL,
    -- The room it is taken to need.
    size INTEGER NOT NULL,
    body BLOB NOT NULL
);

CREATE INDEX blobs_by_use ON blobs (used_at, id, size);
