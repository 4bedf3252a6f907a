CREATE TABLE leases (
    name TEXT NOT NULL PRIMARY KEY,
    holder BLOB NOT NULL,
    -- In milliseconds since 1970.
    until INTEGER NOT NULL
);
