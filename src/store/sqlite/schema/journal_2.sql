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
