package fences_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// auditLateWrites lets the server itself fail a write whose token is not the latest: of an update by the snapshot of its
// statement, of an insert by what has been issued at that moment.
func auditLateWrites(t *testing.T, db *gorm.DB) {
	t.Helper()
	for _, statement := range []string{
		`CREATE FUNCTION late_update() RETURNS trigger LANGUAGE plpgsql STABLE AS $$ BEGIN
			IF EXISTS (SELECT 1 FROM gormlock_fence f WHERE f.token > NEW.fence) THEN RAISE EXCEPTION 'a late update'; END IF;
			RETURN NEW; END $$`,
		`CREATE TRIGGER late BEFORE UPDATE ON reports FOR EACH ROW EXECUTE FUNCTION late_update()`,
		`CREATE FUNCTION late_insert() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$ BEGIN
			IF EXISTS (SELECT 1 FROM gormlock_fence f WHERE f.token > NEW.fence) THEN RAISE EXCEPTION 'a late insert'; END IF;
			RETURN NEW; END $$`,
		`CREATE CONSTRAINT TRIGGER late_at_commit AFTER INSERT ON reports DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late_insert()`,
	} {
		stand.Must(t, db.Exec(statement).Error)
	}
}

// L1: of holders that come while others still write, none writes once a later token has been issued.
func TestL1_RacingHolders(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&report{}, &reportNote{}})
	auditLateWrites(t, db)
	shared := report{}
	stand.Must(t, stand.With(db, stand.Issue(t, db, "report", 1)).Create(&shared).Error)
	var written, refused atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				token := stand.Issue(t, db, "report", 1)
				tx := stand.With(db, token)
				mine := report{ID: shared.ID}
				for _, err := range []error{
					tx.Model(&mine).Update("body", "one").Error,
					tx.Model(&report{}).Where("id > 0").Update("body", "many").Error,
					tx.Create(&[]report{{}, {}}).Error,
					tx.Unscoped().Where("id > ?", shared.ID).Delete(&report{}).Error,
					tx.Save(&mine).Error,
					tx.Transaction(func(tx *gorm.DB) error {
						if err := gormlock.FenceTx(tx, token); err != nil {
							return err
						}
						return errors.Join(tx.Create(&report{}).Error, tx.Model(&mine).Update("body", "both").Error)
					}),
				} {
					switch {
					case err == nil:
						written.Add(1)
					case errors.Is(err, gormlock.ErrFenced):
						refused.Add(1)
					default:
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if written.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d writes, %d refusals: the test has seen no race", written.Load(), refused.Load())
	}
	stand.Equal(t, "fence", stand.Row[report](t, db, shared.ID).Fence <= latestToken(t, db), true)
}

// The control: the audit sees a late write.
func TestL1_TheAuditSeesLateWrites(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&report{}, &reportNote{}})
	auditLateWrites(t, db)
	old := stand.Issue(t, db, "report", 1)
	r := report{}
	stand.Must(t, stand.With(db, old).Create(&r).Error)
	stand.Issue(t, db, "report", 1)
	for name, err := range map[string]error{
		"update": db.Exec("UPDATE reports SET body = 'late', fence = ? WHERE fence <= ?", old.Number, old.Number).Error,
		"insert": db.Exec("INSERT INTO reports (body, fence) VALUES ('late', ?)", old.Number).Error,
	} {
		if err == nil || !strings.Contains(err.Error(), "a late "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func latestToken(t *testing.T, db *gorm.DB) (number int64) {
	t.Helper()
	stand.Must(t, db.Raw("SELECT max(token) FROM "+fence.Table).Scan(&number).Error)
	return number
}
