package work_test

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/work"
)

// No write of its struct takes a job from the worker that runs it. Otherwise the job would be handed out again while its handler runs, or never
// again.
func TestState_ofAJobThatRuns(t *testing.T) {
	t.Parallel()
	onKey := []clause.Column{{Name: "id"}}
	for name, write := range map[string]func(db *gorm.DB, m *Mail) error{
		"Save":            func(db *gorm.DB, m *Mail) error { m.State = "ready"; return db.Save(m).Error },
		"Save of a value": func(db *gorm.DB, m *Mail) error { m.State = "ready"; return db.Save(*m).Error },
		"Save of a slice": func(db *gorm.DB, m *Mail) error { m.State = "ready"; return db.Save([]*Mail{m}).Error },
		"Save, no lease":  func(db *gorm.DB, m *Mail) error { m.State, m.ClaimedUntil = "ready", nil; return db.Save(m).Error },
		"Save, dead":      func(db *gorm.DB, m *Mail) error { m.State = "dead"; return db.Save(m).Error },
		"Save, no state":  func(db *gorm.DB, m *Mail) error { m.State = ""; return db.Save(m).Error },
		"in a transaction": func(db *gorm.DB, m *Mail) error {
			return db.Transaction(func(tx *gorm.DB) error { m.State = "later"; return tx.Save(m).Error })
		},
		"Save of what was read": func(db *gorm.DB, m *Mail) error {
			must(t, db.First(m).Error)
			m.State = "ready"
			return db.Save(m).Error
		},
		"Save of another read": func(db *gorm.DB, m *Mail) error {
			var now Mail
			must(t, db.First(&now, m.ID).Error)
			now.State = "ready"
			return db.Save(&now).Error
		},
		"Save without the version": func(db *gorm.DB, m *Mail) error {
			m.State = "ready"
			return db.Clauses(gormlock.IgnoreVersion()).Save(m).Error
		},
		"SaveMerged": func(db *gorm.DB, m *Mail) error {
			base := *m
			m.State = "ready"
			return gormlock.SaveMerged(db, m, &base)
		},
		"Updates": func(db *gorm.DB, m *Mail) error { m.State = "ready"; return db.Updates(m).Error },
		"Updates of a struct": func(db *gorm.DB, m *Mail) error {
			return db.Model(m).Updates(Mail{Job: work.Job{State: "ready"}, Text: "y"}).Error
		},
		"Updates of a form": func(db *gorm.DB, m *Mail) error { return db.Model(m).Updates(struct{ State string }{"ready"}).Error },
		"a map":             func(db *gorm.DB, m *Mail) error { return db.Model(m).Updates(map[string]any{"state": "ready"}).Error },
		"a map by the name of the field": func(db *gorm.DB, m *Mail) error {
			return db.Model(m).Updates(map[string]any{"State": "ready", "text": "y"}).Error
		},
		"Update":        func(db *gorm.DB, m *Mail) error { return db.Model(m).Update("state", "ready").Error },
		"an expression": func(db *gorm.DB, m *Mail) error { return db.Model(m).Update("state", gorm.Expr("'rea' || 'dy'")).Error },
		"UpdateColumn":  func(db *gorm.DB, m *Mail) error { return db.Model(m).UpdateColumn("State", "ready").Error },
		"Select":        func(db *gorm.DB, m *Mail) error { return db.Model(m).Select("State").Updates(Mail{}).Error },
		"of a slice":    func(db *gorm.DB, m *Mail) error { return db.Model(&[]Mail{*m}).Update("state", "ready").Error },
		"upsert of all columns": func(db *gorm.DB, m *Mail) error {
			m.State = "ready"
			return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(m).Error
		},
		"upsert of the state": func(db *gorm.DB, m *Mail) error {
			m.State = "ready"
			return db.Clauses(clause.OnConflict{Columns: onKey, DoUpdates: clause.AssignmentColumns([]string{"state"})}).Create(m).Error
		},
		"upsert that sets the state": func(db *gorm.DB, m *Mail) error {
			return db.Clauses(clause.OnConflict{Columns: onKey, DoUpdates: clause.Assignments(map[string]any{"state": "ready"})}).Create(m).Error
		},
		"Assign": func(db *gorm.DB, m *Mail) error {
			return db.Where("id = ?", m.ID).Assign(map[string]any{"state": "ready"}).FirstOrCreate(&Mail{}).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			inHandler(t, db, func(m *Mail, _ time.Time) {
				if err := write(db, m); !errors.Is(err, gormlock.ErrOption) {
					t.Errorf("%v", err)
				}
				if now := reload(t, db, m.ID); now.State != "running" || now.Text != "x" || now.Version != 2 {
					t.Errorf("%+v", now)
				}
			})
		})
	}
}

// A program may write the State of a job that does not run, and any State by conditions alone.
func TestState_thatMayBeWritten(t *testing.T) {
	t.Parallel()
	db := open(t)
	m := enqueue(t, db, "x")[0]
	m.State = "dead"
	must(t, db.Save(m).Error)
	must(t, db.Model(m).Update("state", "ready").Error)
	must(t, db.Model(&Mail{}).Where("id = ?", m.ID).Updates(map[string]any{"state": "running", "claimed_until": time.Now().Add(time.Hour)}).Error)
	must(t, db.Where("state = 'running'").Model(&Mail{}).Update("state", "ready").Error)
	must(t, db.Model(&Mail{}).Where("id = ?", m.ID).UpdateColumns(map[string]any{"state": "running"}).Error)
	must(t, db.Exec("UPDATE mails SET state = 'ready', claimed_until = NULL").Error)
	must(t, db.Clauses(clause.OnConflict{UpdateAll: true}).Create(reload(t, db, m.ID)).Error)
}

// A handler can write the other fields of its job, even after Complete.
func TestState_thatIsNotWritten(t *testing.T) {
	t.Parallel()
	db := open(t)
	inHandler(t, db, func(m *Mail, _ time.Time) {
		m.State = "ready"
		must(t, db.Omit("State").Save(m).Error)
		must(t, db.Select("Text").Updates(m).Error)
		must(t, db.Omit("State").Save([]*Mail{m}).Error)
		m.State = "running"
		must(t, db.Save(m).Error)
		must(t, db.Transaction(func(tx *gorm.DB) error {
			must(t, work.Complete(tx, m))
			m.Text = "done"
			return tx.Save(m).Error
		}))
	})
}
