package work_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/work"
)

type stateName string

// stateUpdates are updates of a job's State by its struct, and by conditions.
func stateUpdates() map[string]func(db *gorm.DB, m *Mail, state string) error {
	return map[string]func(db *gorm.DB, m *Mail, state string) error{
		"Save": func(db *gorm.DB, m *Mail, state string) error { m.State = state; return db.Save(m).Error },
		"Save without the version": func(db *gorm.DB, m *Mail, state string) error {
			m.State = state
			return db.Clauses(gormlock.IgnoreVersion()).Save(m).Error
		},
		"Save of a value": func(db *gorm.DB, m *Mail, state string) error { m.State = state; return db.Save(*m).Error },
		"Save of a slice": func(db *gorm.DB, m *Mail, state string) error { m.State = state; return db.Save([]*Mail{m}).Error },
		"SaveMerged": func(db *gorm.DB, m *Mail, state string) error {
			base := *m
			m.State = state
			return gormlock.SaveMerged(db, m, &base)
		},
		"Updates": func(db *gorm.DB, m *Mail, state string) error { m.State = state; return db.Updates(m).Error },
		"Updates of a struct": func(db *gorm.DB, m *Mail, state string) error {
			return db.Model(m).Updates(Mail{Job: work.Job{State: state}}).Error
		},
		"a map": func(db *gorm.DB, m *Mail, state string) error {
			return db.Model(m).Updates(map[string]any{"State": state, "claimed_by": "a loop"}).Error
		},
		"Update":       func(db *gorm.DB, m *Mail, state string) error { return db.Model(m).Update("state", state).Error },
		"UpdateColumn": func(db *gorm.DB, m *Mail, state string) error { return db.Model(m).UpdateColumn("state", state).Error },
		"a pointer":    func(db *gorm.DB, m *Mail, state string) error { return db.Model(m).Update("state", &state).Error },
		"a type": func(db *gorm.DB, m *Mail, state string) error {
			return db.Model(m).Update("state", stateName(state)).Error
		},
		"a Valuer": func(db *gorm.DB, m *Mail, state string) error {
			return db.Model(m).Update("state", sql.NullString{String: state, Valid: true}).Error
		},
		"a key and a version": func(db *gorm.DB, m *Mail, state string) error {
			return db.Updates(&Mail{Job: work.Job{ID: m.ID, Version: m.Version, State: state}}).Error
		},
		"upsert": func(db *gorm.DB, m *Mail, state string) error {
			m.State = state
			return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(m).Error
		},
		"upsert of the state": func(db *gorm.DB, m *Mail, state string) error {
			m.State = state
			return db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"state"})}).Create(m).Error
		},
		"in a transaction": func(db *gorm.DB, m *Mail, state string) error {
			return db.Transaction(func(tx *gorm.DB) error { m.State = state; return tx.Save(m).Error })
		},
		"with its post": func(db *gorm.DB, m *Mail, state string) error {
			m.State = state
			return db.Session(&gorm.Session{FullSaveAssociations: true}).Save(&Post{ID: 1, Mails: []Mail{*m}}).Error
		},
	}
}

// A write that gives a job a State with which no worker would ever take it is an error.
func TestState_thatNoWorkerTakes(t *testing.T) {
	t.Parallel()
	for name, write := range stateUpdates() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			must(t, db.AutoMigrate(&Post{}))
			must(t, db.Create(&Post{ID: 1}).Error)
			for _, was := range []string{"ready", "later", "done", "dead"} {
				m := enqueue(t, db, "x")[0]
				must(t, db.Model(&Mail{}).Where("id = ?", m.ID).Update("state", was).Error)
				m = reload(t, db, m.ID)
				for _, state := range []string{"running", "Ready", "pending"} {
					given := *m
					if err := write(db, &given, state); !errors.Is(err, gormlock.ErrOption) {
						t.Errorf("from %s to %s: %v", was, state, err)
					}
					if now := reload(t, db, m.ID); now.State != was || now.Version != m.Version {
						t.Errorf("from %s to %s: %+v", was, state, now)
					}
				}
			}
		})
	}
}

// An update by conditions is an error too if no worker knows the State.
func TestState_unknownByConditions(t *testing.T) {
	t.Parallel()
	db := open(t)
	m := enqueue(t, db, "x")[0]
	for name, err := range map[string]error{
		"Update":        db.Model(&Mail{}).Where("id = ?", m.ID).Update("state", "stopped").Error,
		"a struct":      db.Model(&Mail{}).Where("id = ?", m.ID).Updates(Mail{Job: work.Job{State: "Dead"}}).Error,
		"IgnoreVersion": db.Clauses(gormlock.IgnoreVersion()).Model(&Mail{}).Where("id = ?", m.ID).Update("state", "stopped").Error,
	} {
		if !errors.Is(err, gormlock.ErrOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if m := reload(t, db, m.ID); m.State != "ready" {
		t.Error(m.State)
	}
}

// A new job in such a State is an error too. Only a worker sets running.
func TestState_ofANewJob(t *testing.T) {
	t.Parallel()
	for name, create := range map[string]func(db *gorm.DB, state string) error{
		"Create": func(db *gorm.DB, state string) error { return db.Create(&Mail{Job: work.Job{State: state}}).Error },
		"in two": func(db *gorm.DB, state string) error {
			return db.Create([]Mail{{}, {Job: work.Job{State: state}}}).Error
		},
		"in batches": func(db *gorm.DB, state string) error {
			return db.CreateInBatches([]*Mail{{}, {Job: work.Job{State: state}}}, 1).Error
		},
		"Save": func(db *gorm.DB, state string) error { return db.Save(&Mail{Job: work.Job{State: state}}).Error },
		"Save with its key": func(db *gorm.DB, state string) error {
			return db.Save(&Mail{Job: work.Job{ID: 7, State: state}}).Error
		},
		"Save in two": func(db *gorm.DB, state string) error { return db.Save([]Mail{{}, {Job: work.Job{State: state}}}).Error },
		"a map": func(db *gorm.DB, state string) error {
			return db.Model(&Mail{}).Create(map[string]any{"state": state, "text": "x"}).Error
		},
		"maps": func(db *gorm.DB, state string) error {
			return db.Model(&Mail{}).Create(&[]map[string]any{{"State": "ready", "Text": "x"}, {"State": state, "Text": "y"}}).Error
		},
		"unless it is there": func(db *gorm.DB, state string) error {
			return db.Clauses(clause.OnConflict{DoNothing: true}).Create(&Mail{Job: work.Job{State: state}}).Error
		},
		"FirstOrCreate": func(db *gorm.DB, state string) error {
			return db.Where("text = 'x'").FirstOrCreate(&Mail{Job: work.Job{State: state}}).Error
		},
		"Attrs": func(db *gorm.DB, state string) error {
			return db.Where("text = 'x'").Attrs(Mail{Job: work.Job{State: state}}).FirstOrCreate(&Mail{}).Error
		},
		"G": func(db *gorm.DB, state string) error {
			return gorm.G[Mail](db).Create(context.Background(), &Mail{Job: work.Job{State: state}})
		},
		"as it was read": func(db *gorm.DB, state string) error {
			return db.Create(&Mail{Job: work.Job{ID: 7, Version: 3, State: state}}).Error
		},
		"with its post": func(db *gorm.DB, state string) error {
			return db.Create(&Post{Mails: []Mail{{Job: work.Job{State: state}}}}).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			must(t, db.AutoMigrate(&Post{}))
			for _, state := range []string{"running", "Ready", "pending"} {
				if err := create(db, state); !errors.Is(err, gormlock.ErrOption) {
					t.Errorf("%s: %v", state, err)
				}
			}
			for _, state := range []string{"ready", "later", "done", "dead"} {
				must(t, create(db, state))
				must(t, db.Exec("DELETE FROM mails").Error)
			}
		})
	}
}

// Writes that leave the State as it is, and an operator's updates by conditions, are executed.
func TestState_thatStays(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]takingForm{
		"Save":            func(db *gorm.DB, m *Mail) error { m.Text = "y"; return db.Save(m).Error },
		"Save of a slice": func(db *gorm.DB, m *Mail) error { m.Text = "y"; return db.Save([]*Mail{m}).Error },
		"Save without the version": func(db *gorm.DB, m *Mail) error {
			m.Text = "y"
			return db.Clauses(gormlock.IgnoreVersion()).Save(m).Error
		},
		"upsert of its own": func(db *gorm.DB, m *Mail) error { m.Text = "y"; return upsertOfText(db, m) },
		"the same claim": func(db *gorm.DB, m *Mail) error {
			return db.Model(m).Updates(map[string]any{"state": "running", "claimed_by": m.ClaimedBy, "text": "y"}).Error
		},
		"unless it is there": func(db *gorm.DB, m *Mail) error {
			again := *m
			if err := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&again).Error; err != nil {
				return err
			}
			return db.Model(m).Update("text", "y").Error
		},
		"not chosen": func(db *gorm.DB, m *Mail) error {
			if err := db.Omit("State").Create(&Mail{Job: work.Job{State: "running"}}).Error; err != nil {
				return err
			}
			return db.Model(m).Select("Text").Updates(&Mail{Job: work.Job{State: "pending"}, Text: "y"}).Error
		},
		"running by conditions": func(db *gorm.DB, m *Mail) error {
			giveBack(db, m)
			return db.Model(&Mail{}).Where("id = ?", m.ID).Updates(map[string]any{"state": "running", "text": "y"}).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			m := runsElsewhere(t, db)
			must(t, write(db, m))
			if now := reload(t, db, m.ID); now.Text != "y" || now.State != "running" {
				t.Errorf("%+v", now)
			}
		})
	}
}

// A job that runs without a lease belongs to nobody: a worker takes it over.
func TestRun_takesOverWhatHasNoLease(t *testing.T) {
	t.Parallel()
	db := open(t)
	m := runsElsewhere(t, db)
	must(t, db.Model(m).Update("claimed_until", nil).Error)
	start(t, worker(t, db, func(context.Context, *Mail) error { return nil }, work.Poll(10*time.Millisecond)))
	eventually(t, "it is done", func() bool { return reload(t, db, m.ID).State == "done" })
	if m := reload(t, db, m.ID); m.Attempts != 2 {
		t.Errorf("%d attempts", m.Attempts)
	}
}
