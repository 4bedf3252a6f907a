-- Texts are kept as their bytes: a text of PostgreSQL cannot hold a zero, and
-- bytes have one order everywhere. Bodies are packed already or must be read
-- quickly, so they are not compressed again; that also makes the size of a table
-- on disk an upper bound of what it holds.

CREATE TABLE longhaul.overlays (
    id bytea NOT NULL PRIMARY KEY,
    -- The beginning of a hash of the body: damage must not become another view.
    proof bytea NOT NULL,
    body bytea NOT NULL
);
ALTER TABLE longhaul.overlays ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE longhaul.marks (
    chain bytea NOT NULL,
    model bytea NOT NULL,
    lineage bytea NOT NULL,
    messages bigint NOT NULL,
    overlay bytea REFERENCES longhaul.overlays (id),
    view bytea NOT NULL,
    hint bytea,
    sealed boolean NOT NULL,
    figures bytea NOT NULL,
    seen_at bigint NOT NULL,
    -- The room it is taken to need.
    size bigint NOT NULL,
    PRIMARY KEY (chain, model)
);
ALTER TABLE longhaul.marks ALTER COLUMN figures SET STORAGE EXTERNAL;

CREATE INDEX marks_by_overlay ON longhaul.marks (overlay) WHERE overlay IS NOT NULL;
CREATE INDEX marks_by_view ON longhaul.marks (hint, view) WHERE hint IS NOT NULL;
CREATE INDEX marks_by_lineage ON longhaul.marks (lineage, seen_at);
CREATE INDEX marks_by_age ON longhaul.marks (seen_at, lineage);

-- Overlays that have lost a place, and may have lost their last: so that nobody
-- must look through all of them for the few that can go.
CREATE TABLE longhaul.unplaced (
    id bytea NOT NULL PRIMARY KEY
);

CREATE TABLE longhaul.segments (
    id bytea NOT NULL PRIMARY KEY,
    -- When it was last put; reading one writes nothing.
    used_at bigint NOT NULL,
    -- The room it is taken to need.
    size bigint NOT NULL,
    -- Packed, with a checksum.
    body bytea NOT NULL
);
ALTER TABLE longhaul.segments ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX segments_by_use ON longhaul.segments (used_at, id);

CREATE TABLE longhaul.blobs (
    id bytea NOT NULL PRIMARY KEY,
    used_at bigint NOT NULL,
    -- The room it is taken to need.
    size bigint NOT NULL,
    -- Packed, with a checksum.
    body bytea NOT NULL
);
ALTER TABLE longhaul.blobs ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX blobs_by_use ON longhaul.blobs (used_at, id);

CREATE TABLE longhaul.learned (
    key bytea NOT NULL PRIMARY KEY,
    value bytea NOT NULL
);

-- Work that only one replica should do. Times are the database's own.
CREATE TABLE longhaul.leases (
    name bytea NOT NULL PRIMARY KEY,
    holder bytea NOT NULL,
    until timestamptz NOT NULL
);
