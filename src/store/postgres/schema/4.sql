-- An overlay that loses a place may have lost its last: a commit takes it, and so
-- does a view that was answered where this one was only committed.
CREATE FUNCTION longhaul.mark_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO longhaul.unplaced (id) VALUES (OLD.overlay) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER marks_move AFTER UPDATE OF overlay ON longhaul.marks FOR EACH ROW
    WHEN (OLD.overlay IS NOT NULL AND NEW.overlay IS DISTINCT FROM OLD.overlay)
    EXECUTE FUNCTION longhaul.mark_moved();
