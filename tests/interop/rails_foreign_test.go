package interop

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
)

// What Rails writes without moving the version, and what Go does instead.

func railsUpsert(t *testing.T, s shared) {
	a := s.account(t)
	again := account{ID: a.ID, Name: "upsert"}
	must(t, s.db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}).Create(&again).Error)
	s.mustHave(t, a.ID, "upsert", 1)
	s.rails.stale(t, "@a.update!(name: 'rails')", "update")
	all := []account{{ID: a.ID, Name: "upsert_all"}, {Name: "new"}}
	mustStale(t, s.db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&all).Error) // a new struct and one that was read at 0 look alike
	all = []account{{ID: a.ID, Name: "upsert_all"}, {Name: "new"}}
	must(t, s.db.Clauses(clause.OnConflict{UpdateAll: true}, gormlock.IgnoreVersion()).Create(&all).Error)
	s.mustHave(t, a.ID, "upsert_all", 2)

	// Rails moves no version in upsert_all: a trigger does.
	upsertAll := "Account.upsert_all([{id: @a.id, name: 'rails', created_at: Time.now, updated_at: Time.now}])"
	must(t, s.db.First(&a, a.ID).Error)
	must(t, s.db.Exec(gormlock.VersionTrigger("accounts", "lock_version")).Error)
	s.rails.run(t, upsertAll)
	mustStale(t, s.db.Model(&a).Update("name", "go").Error)
	s.mustHave(t, a.ID, "rails", 3)

	s.rails.load(t, a.ID)
	must(t, s.db.First(&a, a.ID).Error)
	must(t, s.db.Save([]*account{&a}).Error)
	equal(t, "in memory", a.LockVersion, 4)
	s.rails.stale(t, "@a.update!(name: 'lost')", "update")
}

func railsUpdateColumns(t *testing.T, s shared) {
	a := s.account(t)
	must(t, s.db.Model(&a).UpdateColumn("name", "go").Error)
	equal(t, "in memory", a.LockVersion, 1)
	if s.rails.atLeast(t, "7.0.6") {
		// Since then it has the version in its WHERE, and does nothing and says nothing where that does not hold.
		s.rails.run(t, "@a.update_columns(name: 'rails')")
		s.mustHave(t, a.ID, "go", 1)
	}
	s.rails.stale(t, "@a.update!(name: 'rails')", "update")
	s.rails.run(t, "@a.reload.update_columns(name: 'rails')")
	s.mustHave(t, a.ID, "rails", 1) // unseen, but by the trigger
	must(t, s.db.Exec(gormlock.VersionTrigger("accounts", "lock_version")).Error)
	s.rails.run(t, "@a.reload.update_columns(name: 'seen')")
	mustStale(t, s.db.Model(&a).UpdateColumn("name", "go").Error)
}

func railsOnlyGrows(t *testing.T, s shared) {
	a := s.account(t)
	must(t, s.db.Exec(`CREATE FUNCTION only_grows() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.lock_version <= OLD.lock_version THEN RAISE 'version % after %', NEW.lock_version, OLD.lock_version; END IF; RETURN NEW; END $$;
		CREATE TRIGGER only_grows BEFORE UPDATE ON accounts FOR EACH ROW EXECUTE FUNCTION only_grows()`).Error)
	old := a
	for _, write := range []func() error{
		func() error { return s.db.Model(&a).Update("name", "go").Error },
		func() error { s.rails.run(t, "@a.reload.update!(name: 'rails')"); return s.db.First(&a, a.ID).Error },
		func() error { return s.db.Save(&a).Error },
		func() error { return s.db.Save([]*account{&a}).Error },
		func() error { return gormlock.Touch(s.db, &a) },
		func() error {
			return s.db.Clauses(gormlock.IgnoreVersion()).Model(&old).Update("name", "ignored").Error
		},
		func() error {
			return s.db.Clauses(clause.OnConflict{UpdateAll: true}, gormlock.IgnoreVersion()).Create(&account{ID: a.ID, Name: "upsert"}).Error
		},
		func() error { return s.db.Delete(&account{}, a.ID).Error },
		func() error {
			return s.db.Unscoped().Model(&account{}).Where("id = ?", a.ID).Update("deleted_at", nil).Error
		},
	} {
		must(t, write())
	}
	equal(t, "version", s.row(t, a.ID).LockVersion, 9)
}

// railsHotRow lets four writers on each side count one row up, each trying again when it is stale.
func railsHotRow(t *testing.T, s shared) {
	const writers, each = 4, 25
	a := s.account(t)
	var all sync.WaitGroup
	var conflicts sync.Map
	for i := range writers {
		r := s.rails.process.session(t, fmt.Sprint("writer ", i))
		done := r.start(fmt.Sprintf(`a = Account.find(%d)
			%d.times do
				begin
					a.update!(balance: a.balance + 1)
				rescue ActiveRecord::StaleObjectError
					a.reload
					retry
				end # of one
			end`, a.ID, each))
		all.Go(func() {
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			for n := range each {
				err := gormlock.Transaction(s.db, func(tx *gorm.DB) error {
					var mine account
					if err := tx.First(&mine, a.ID).Error; err != nil {
						return err
					}
					mine.Balance++
					return tx.Save(&mine).Error
				}, gormlock.Attempts(1000), gormlock.OnRetry(func(attempt int, err error) {
					if !errors.Is(err, gormlock.ErrStale) {
						t.Error(err)
					}
					conflicts.Store([3]int{i, n, attempt}, true)
				}))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got := s.row(t, a.ID)
	equal(t, "counted", got.Balance, 100+2*writers*each)
	equal(t, "version", got.LockVersion, 2*writers*each)
	seen := 0
	conflicts.Range(func(any, any) bool { seen++; return true })
	if seen == 0 {
		t.Error("no conflict: this test proves nothing")
	}
	t.Logf("%d conflicts in Go", seen)
}
