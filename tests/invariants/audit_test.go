package invariants

import (
	"fmt"
	"strings"
	"testing"
)

// auditSchema is the table that holds every change of every row, and the trigger that fills it. A change that is rolled
// back leaves with its transaction. The identities grow in the order in which a row is changed, for its lock orders them.
const auditSchema = `
CREATE TABLE audit (
	id bigserial PRIMARY KEY,
	tab text NOT NULL,
	key text NOT NULL,
	op text NOT NULL,
	before jsonb,
	after jsonb,
	writer text NOT NULL,
	tx bigint NOT NULL DEFAULT txid_current()
);
CREATE INDEX ON audit (tab, key, id);
CREATE FUNCTION audited() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	was jsonb;
	is_now jsonb;
	key text;
BEGIN
	IF TG_OP <> 'INSERT' THEN was := to_jsonb(OLD); END IF;
	IF TG_OP <> 'DELETE' THEN is_now := to_jsonb(NEW); END IF;
	IF was = is_now THEN RETURN NULL; END IF; -- a child whose foreign key is set to what it was
	SELECT string_agg(rtrim(COALESCE(was, is_now) ->> name), '/') INTO key FROM unnest(TG_ARGV) name;
	INSERT INTO audit (tab, key, op, before, after, writer)
		VALUES (TG_TABLE_NAME, key, TG_OP, was, is_now, current_setting('application_name'));
	RETURN NULL;
END $$;
CREATE FUNCTION no_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('oracle.no_commit', true) = 'on' THEN
		RAISE EXCEPTION 'the commit fails';
	END IF;
	RETURN NULL;
END $$`

// audit puts the trigger on a table.
func (w *world) audit(table string, key []string) error {
	quoted := "'" + strings.Join(key, "', '") + "'"
	return w.plain.Exec(fmt.Sprintf(`
		CREATE TRIGGER audited AFTER INSERT OR UPDATE OR DELETE ON %[1]s FOR EACH ROW EXECUTE FUNCTION audited(%[2]s);
		CREATE CONSTRAINT TRIGGER no_commit AFTER INSERT OR UPDATE OR DELETE ON %[1]s DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION no_commit()`, table, quoted)).Error
}

// change is one committed change of a row.
type change struct {
	ID     int64
	Tab    string
	Key    string
	Op     string
	Before map[string]any `gorm:"serializer:json"`
	After  map[string]any `gorm:"serializer:json"`
	Writer string
	Tx     int64
	Prev   int64 // the change that made the row what this one found
}

func (c *change) String() string {
	return fmt.Sprintf("#%d %s %s %s by %s in %d: %v -> %v, found #%d", c.ID, c.Op, c.Tab, c.Key, c.Writer, c.Tx, c.Before, c.After, c.Prev)
}

// now is a point in time between changes: the sequence counts on in transactions of all kinds, ended or not.
func (w *world) now(t testing.TB) (id int64) {
	t.Helper()
	if err := w.sql.QueryRow("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM audit_id_seq").Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// changes are those that were committed, made between two points in time.
func (w *world) changes(t testing.TB, from, to int64) []change {
	t.Helper()
	var all []change
	must(t, w.plain.Raw(`SELECT a.*, COALESCE((SELECT max(p.id) FROM audit p WHERE p.tab = a.tab AND p.key = a.key AND p.id < a.id), 0) prev
		FROM audit a WHERE a.id > ? AND a.id <= ? ORDER BY a.id`, from, to).Scan(&all).Error)
	return all
}

// state names what the row of a struct is now by its last change; 0 where it never was or is gone.
func (w *world) state(t testing.TB, s *shape, row any) (id int64) {
	t.Helper()
	err := w.sql.QueryRow("SELECT COALESCE((SELECT CASE WHEN op = 'DELETE' THEN 0 ELSE id END FROM audit WHERE tab = $1 AND key = $2 ORDER BY id DESC LIMIT 1), 0)",
		s.table, s.auditKey(row)).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
