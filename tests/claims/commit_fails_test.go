package claims_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type ticket struct {
	ID      int64
	State   string
	Note    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
	found   bool
}

func (t *ticket) AfterFind(*gorm.DB) error {
	t.found = true
	return nil
}

// The commit of a claim without a transaction comes after its rows. If it fails, nothing is claimed, and if the connection ends before it
// is known, the rows count as not read.
func TestClaim_whoseCommitFails(t *testing.T) {
	t.Parallel()
	for mode, option := range map[string]pgtest.Option{"plain": pgtest.MaxConns(4), "prepared": pgtest.PrepareStmt(), "simple": pgtest.SimpleProtocol()} {
		for what, does := range map[string]string{
			"refused":          "RAISE EXCEPTION 'quota exceeded'",
			"the last row":     "IF NEW.id = 5 THEN RAISE SQLSTATE '40001'; END IF",
			"connection ended": "PERFORM pg_terminate_backend(pg_backend_pid())",
		} {
			t.Run(mode+", "+what, func(t *testing.T) {
				db := stand.Versioned(t, []any{&ticket{}}, option)
				stand.Must(t, db.Exec(`CREATE FUNCTION nope() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.state = 'running' THEN `+does+`; END IF; RETURN NULL; END $$`).Error)
				stand.Must(t, db.Exec(`CREATE CONSTRAINT TRIGGER nope AFTER UPDATE ON tickets DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION nope()`).Error)
				stand.Must(t, db.Exec(`INSERT INTO tickets (state, note) SELECT 'ready', 'old' FROM generate_series(1, 5)`).Error)
				ready := func(q *gorm.DB) *gorm.DB { return q.Where("state = ?", "ready").Order("id") }
				rows, err := gormlock.Claim[ticket](db, 5, map[string]any{"state": "running"}, ready)
				if err == nil {
					t.Fatal("no error")
				}
				if what != "connection ended" && len(rows) > 0 {
					t.Errorf("%d rows came back: %v", len(rows), err)
				}
				var claimed int64
				for range 3 { // the pool may still have the connection that has ended
					if db.Model(&ticket{}).Where("state = 'running'").Count(&claimed).Error == nil {
						break
					}
				}
				stand.Equal(t, "claimed rows", claimed, 0)
				stand.Must(t, db.Exec("UPDATE tickets SET note = 'rival', version = version + 1").Error)
				for i := range rows {
					rows[i].State = "done"
					if err := db.Save(&rows[i]).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
						t.Errorf("row %d was saved: %v", i, err)
					}
				}
			})
		}
	}
}

// The next claim gets what one did not that failed, in the same slice of a caller who goes on.
func TestClaim_afterACommitThatFailed(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&ticket{}})
	stand.Must(t, db.Exec(`CREATE FUNCTION once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF nextval('tries') = 1 THEN RAISE SQLSTATE '40001'; END IF; RETURN NULL; END $$`).Error)
	stand.Must(t, db.Exec(`CREATE SEQUENCE tries; CREATE CONSTRAINT TRIGGER once AFTER UPDATE ON tickets DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION once()`).Error)
	stand.Must(t, db.Exec(`INSERT INTO tickets (state) VALUES ('ready')`).Error)
	claim := func() ([]ticket, error) {
		return gormlock.Claim[ticket](db, 5, map[string]any{"state": "running"}, func(q *gorm.DB) *gorm.DB { return q.Where("state = ?", "ready") })
	}
	rows, err := claim()
	if len(rows) > 0 || !gormlock.IsRetryable(err) {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	rows, err = claim()
	stand.Must(t, err)
	if len(rows) != 1 || !rows[0].found || rows[0].Version != 2 {
		t.Errorf("claimed %+v", rows)
	}
	rows[0].State = "done"
	stand.Must(t, db.Save(&rows[0]).Error)
}
