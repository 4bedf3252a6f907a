-- A file as the second format left it: not to be edited, whatever comes later.
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

CREATE TABLE branches (
    -- What all that belongs to it is kept under; never given twice.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    -- NULL while it is being removed, so that nothing finds it any more.
    id BLOB UNIQUE,
    lineage BLOB NOT NULL,
    tenant BLOB NOT NULL,
    label TEXT,
    -- The branch it left, and the messages they have in common.
    parent INTEGER,
    common INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    began_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    -- It is only there for those that left it.
    forgotten INTEGER NOT NULL DEFAULT 0,
    -- How many, and the room everything is taken to need.
    places INTEGER NOT NULL DEFAULT 0,
    entries INTEGER NOT NULL DEFAULT 0,
    size INTEGER NOT NULL
);

CREATE INDEX branches_by_lineage ON branches (lineage, seen_at);
CREATE INDEX branches_by_parent ON branches (parent, common) WHERE parent IS NOT NULL;
CREATE INDEX branches_by_seen ON branches (seen_at, id) WHERE forgotten = 0;
CREATE INDEX branches_forgotten ON branches (id) WHERE forgotten <> 0;

CREATE TABLE places (
    chain BLOB NOT NULL PRIMARY KEY,
    branch INTEGER NOT NULL,
    messages INTEGER NOT NULL
);

CREATE INDEX places_by_branch ON places (branch);

CREATE TABLE messages (
    branch INTEGER NOT NULL,
    message INTEGER NOT NULL,
    -- From which state of the history on it counts.
    since INTEGER NOT NULL,
    size INTEGER NOT NULL,
    -- Packed if that makes them smaller.
    parts BLOB NOT NULL,
    -- The names of the pieces, one after the other.
    blobs BLOB NOT NULL,
    PRIMARY KEY (branch, message, since)
);

CREATE TABLE promises (
    number INTEGER PRIMARY KEY,
    reference BLOB NOT NULL,
    branch INTEGER NOT NULL,
    first INTEGER NOT NULL,
    behind INTEGER NOT NULL,
    block INTEGER,
    blob BLOB,
    UNIQUE (reference, branch)
);

CREATE INDEX promises_by_branch ON promises (branch, behind);

-- The pieces a branch needs, and the first message that does.
CREATE TABLE links (
    branch INTEGER NOT NULL,
    blob BLOB NOT NULL,
    message INTEGER NOT NULL,
    PRIMARY KEY (branch, blob)
) WITHOUT ROWID;

CREATE INDEX links_by_blob ON links (blob);
CREATE INDEX links_by_message ON links (branch, message);

CREATE TABLE entries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    branch INTEGER NOT NULL,
    message INTEGER NOT NULL,
    block INTEGER NOT NULL,
    kind TEXT NOT NULL,
    part INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    tool TEXT NOT NULL,
    path TEXT NOT NULL,
    -- Packed if that makes it smaller; else the stretch of a piece it stands in.
    text BLOB,
    blob BLOB,
    first INTEGER,
    behind INTEGER,
    bytes INTEGER NOT NULL,
    reference BLOB NOT NULL,
    at INTEGER NOT NULL,
    size INTEGER NOT NULL,
    UNIQUE (branch, message, block, kind, part)
);

CREATE INDEX entries_by_kind ON entries (branch, kind, number, message);
CREATE INDEX entries_by_reference ON entries (reference);

-- The words of entries, each with its branch before it: to look for a word is
-- to look for it in one branch, however many others have it too.
CREATE VIRTUAL TABLE words USING fts5 (
    line,
    content = '',
    contentless_delete = 1,
    detail = none,
    tokenize = "ascii tokenchars '_'"
);

-- Whether a branch needs a piece. The others are few, and looked through often.
ALTER TABLE blobs ADD COLUMN linked INTEGER NOT NULL DEFAULT 0;
DROP INDEX blobs_by_use;
CREATE INDEX blobs_by_use ON blobs (used_at, id, size) WHERE linked = 0;

-- The room that all pieces are taken to need.
CREATE TABLE totals (blobs INTEGER NOT NULL);
INSERT INTO totals SELECT coalesce(sum(size), 0) FROM blobs;
CREATE TRIGGER blobs_come AFTER INSERT ON blobs BEGIN
    UPDATE totals SET blobs = blobs + new.size;
END;
CREATE TRIGGER blobs_go AFTER DELETE ON blobs BEGIN
    UPDATE totals SET blobs = blobs - old.size;
END;

INSERT INTO blobs (id, used_at, size, body) VALUES (
    x'9ffdbce9018b85da1ca4c58ad082ba682b38f063f8cb082f29c2168f98168ff8',
    1000,
    120,
    x'28b52ffd0458390000636f6e74656e74fca9c531'
);

INSERT INTO branches
    (number, id, lineage, tenant, label, parent, common, messages, began_at, seen_at, places, entries, size)
VALUES (
    1,
    x'5a297aa205de417f09fd27b7b5ca9349',
    x'5a297aa205de417f09fd27b7b5ca9349',
    x'66e2c0337860f2557b24a2c01d3370052f2a228168da3c2933797b1107033d95',
    'seven', NULL, 0, 5, 1000, 2000, 2, 2, 1338
), (
    2,
    x'56803bac690828d055956b40c38f3dd8',
    x'56803bac690828d055956b40c38f3dd8',
    x'66e2c0337860f2557b24a2c01d3370052f2a228168da3c2933797b1107033d95',
    NULL, 1, 3, 6, 3000, 3000, 1, 0, 280
);

INSERT INTO places (chain, branch, messages) VALUES
    (x'b06d1910970334f787453c76c19c93abd6d912835d25e0fc9819aa5a8c87732f', 1, 3),
    (x'8da43c649e2908d841df504f05731ddb8bf558be09453263e99edf47bb2a25a6', 1, 5),
    (x'd24c49654fd83a14c440a358556b4ae10f4ce50d1b351dd37d8a4483a51fc77f', 2, 6);

-- Plain parts behind a zero, packed ones behind a one.
INSERT INTO messages (branch, message, since, size, parts, blobs) VALUES
    (1, 0, 0, 117, CAST(x'00' || 'zero' AS BLOB), x'9ffdbce9018b85da1ca4c58ad082ba682b38f063f8cb082f29c2168f98168ff8'),
    (1, 0, 5, 97, x'0128b52ffd2007390000636f6e74656e74', x'');

INSERT INTO promises (number, reference, branch, first, behind, block, blob) VALUES
    (1, x'1a0d12016999e47689da', 1, 0, 1, 2, x'9ffdbce9018b85da1ca4c58ad082ba682b38f063f8cb082f29c2168f98168ff8');

INSERT INTO links (branch, blob, message) VALUES
    (1, x'9ffdbce9018b85da1ca4c58ad082ba682b38f063f8cb082f29c2168f98168ff8', 0);
UPDATE blobs SET linked = 1;

INSERT INTO entries
    (number, branch, message, block, kind, part, turn, tool, path, text, blob, first, behind, bytes, reference, at, size)
VALUES
    (1, 1, 1, 0, 'tool_result', 0, 1, 'Bash', 'src/lib.rs', CAST(x'00' || 'two words' AS BLOB), NULL, NULL, NULL, 9, x'1a0d12016999e47689da', 1000, 282),
    (2, 1, 4, 1, 'decision', 3, 2, '', '', NULL, x'9ffdbce9018b85da1ca4c58ad082ba682b38f063f8cb082f29c2168f98168ff8', 2, 5, 7, x'6f3287cd13d7e1d790ec', 2000, 262);

INSERT INTO words (rowid, line) VALUES (1, '1xtwo 1xwords'), (2, '1xwords 1xsome_name 1xété');

PRAGMA user_version = 2;
