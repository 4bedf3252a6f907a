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
