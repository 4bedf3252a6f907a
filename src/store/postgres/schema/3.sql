-- The overlays that a hinted session used last, without looking at its other
-- marks or at anybody else's overlays.
CREATE INDEX marks_by_hint ON longhaul.marks (hint, seen_at DESC, overlay)
    WHERE hint IS NOT NULL AND overlay IS NOT NULL;

-- What all branches come to, as changes to be summed up, like `totals`: to look
-- at every branch takes ever longer, and it is asked for every minute.
CREATE TABLE longhaul.extents (
    size bigint NOT NULL,
    branches bigint NOT NULL,
    entries bigint NOT NULL
);
CREATE FUNCTION longhaul.branches_came() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO longhaul.extents
        SELECT sum(size), count(id), sum(CASE WHEN id IS NULL THEN 0 ELSE entries END)
        FROM came HAVING count(*) > 0;
    RETURN NULL;
END $$;
CREATE FUNCTION longhaul.branches_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO longhaul.extents
        SELECT sum(sign * size), sum(CASE WHEN id IS NULL THEN 0 ELSE sign END),
            sum(CASE WHEN id IS NULL THEN 0 ELSE sign * entries END)
        FROM (SELECT 1 AS sign, id, size, entries FROM came
            UNION ALL SELECT -1, id, size, entries FROM went) AS changes
        HAVING sum(sign * size) <> 0
            OR sum(CASE WHEN id IS NULL THEN 0 ELSE sign END) <> 0
            OR sum(CASE WHEN id IS NULL THEN 0 ELSE sign * entries END) <> 0;
    RETURN NULL;
END $$;
CREATE FUNCTION longhaul.branches_went() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO longhaul.extents
        SELECT -sum(size), -count(id), -sum(CASE WHEN id IS NULL THEN 0 ELSE entries END)
        FROM went HAVING count(*) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER branches_come AFTER INSERT ON longhaul.branches
    REFERENCING NEW TABLE AS came
    FOR EACH STATEMENT EXECUTE FUNCTION longhaul.branches_came();
CREATE TRIGGER branches_change AFTER UPDATE ON longhaul.branches
    REFERENCING NEW TABLE AS came OLD TABLE AS went
    FOR EACH STATEMENT EXECUTE FUNCTION longhaul.branches_changed();
CREATE TRIGGER branches_go AFTER DELETE ON longhaul.branches
    REFERENCING OLD TABLE AS went
    FOR EACH STATEMENT EXECUTE FUNCTION longhaul.branches_went();
-- From here on nobody changes a branch until this is done, so it is right.
INSERT INTO longhaul.extents
    SELECT coalesce(sum(size), 0), count(id),
        coalesce(sum(CASE WHEN id IS NULL THEN 0 ELSE entries END), 0)
    FROM longhaul.branches;
