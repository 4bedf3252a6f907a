-- A file as the second format left it: not to be edited, whatever comes later.
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
CREATE TABLE overlays (
    id BLOB NOT NULL PRIMARY KEY,
    -- The beginning of a hash of the body: damage must not become another view.
    proof BLOB NOT NULL,
    body BLOB NOT NULL
);

CREATE TABLE marks (
    chain BLOB NOT NULL,
    model TEXT NOT NULL,
    lineage BLOB NOT NULL,
    messages INTEGER NOT NULL,
    overlay BLOB REFERENCES overlays (id),
    view BLOB NOT NULL,
    hint BLOB,
    sealed INTEGER NOT NULL,
    figures BLOB NOT NULL,
    seen_at INTEGER NOT NULL,
    -- The room it is taken to need.
    size INTEGER NOT NULL,
    PRIMARY KEY (chain, model)
);

CREATE INDEX marks_by_overlay ON marks (overlay) WHERE overlay IS NOT NULL;
CREATE INDEX marks_by_view ON marks (hint, view) WHERE hint IS NOT NULL;
CREATE INDEX marks_by_session ON marks (hint, overlay, seen_at) WHERE hint IS NOT NULL AND overlay IS NOT NULL;
CREATE INDEX marks_by_lineage ON marks (lineage, seen_at, size);

CREATE TABLE learned (
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

INSERT INTO overlays (id, proof, body) VALUES (
    x'80b24b00e4c2a70dcb353590baa0d1780be8f637f744b23e3abe5ae48e911401',
    x'0be9c598ae638355',
    CAST('body' AS BLOB)
);

INSERT INTO marks VALUES (
    x'7b1761cf8bcca464a63da0f234df75eaa7f22d3527a03c1a61163aa563d4d79a',
    'model-a',
    x'005ec2644167c5a61241066fcd2b552d',
    3,
    x'80b24b00e4c2a70dcb353590baa0d1780be8f637f744b23e3abe5ae48e911401',
    x'10dad44a915510e326debc429f0b4e60bed5c796402c763f3822e73f313811d3',
    x'53313fc1bde9b4c7f6db1bf12630c707',
    0,
    CAST('figures' AS BLOB),
    1000,
    414
);

INSERT INTO learned VALUES ('window/a', '200000');

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

INSERT INTO segments VALUES (
    x'f47aac7db3fde245f9a2a964b0bd3a8eb72ef68461662effb1bb4c7a74c952a4',
    1000,
    120,
    x'28b52ffd0458390000636f6e74656e74fca9c531'
);


CREATE TABLE leases (
    name TEXT NOT NULL PRIMARY KEY,
    holder BLOB NOT NULL,
    -- In milliseconds since 1970.
    until INTEGER NOT NULL
);

INSERT INTO leases VALUES ('segment/7', x'00112233445566778899aabbccddeeff', 1000);

PRAGMA user_version = 3;
