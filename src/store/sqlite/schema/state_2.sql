CREATE TABLE segments (
    id BLOB NOT NULL PRIMARY KEY,
    -- When it was last put; reading one writes nothing.
    used_at INTEGER NOT NULL,
    -- The room it is taken to need.
    size INTEGER NOT NULL,
    -- Packed, with a checksum.
    body BLOB NOT NULL
);

CREATE INDEX segments_by_use ON segments (used_at, id, size);
