package work_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/work"
)

// A handler that saves its job after the end of the first lease keeps the job.
func TestRun_aHandlerSavesItsJob(t *testing.T) {
	t.Parallel()
	db := open(t)
	mail := enqueue(t, db, "x")[0]
	var attempts atomic.Int32
	handle := func(_ context.Context, m *Mail) error {
		attempts.Add(1)
		claimed := *m.ClaimedUntil
		for range 3 {
			eventually(t, "a lease later", func() bool { return time.Now().After(claimed) })
			m.Text += "x"
			if err := db.Save(m).Error; err != nil {
				return err
			}
			claimed = time.Now().Add(400 * time.Millisecond)
		}
		return nil
	}
	for range 2 {
		start(t, worker(t, db, handle, work.Lease(5*time.Second), work.Poll(10*time.Millisecond)))
	}
	eventually(t, "the end", func() bool { return states(t, db)["done"] == 1 })
	if m := reload(t, db, mail.ID); attempts.Load() != 1 || m.Text != "xxxx" {
		t.Errorf("%d attempts, %q, %q", attempts.Load(), m.Text, m.LastError)
	}
}

// inHandler calls try in the handler of a job. Its lease was renewed since it was claimed.
func inHandler(t *testing.T, db *gorm.DB, try func(m *Mail, renewed time.Time)) {
	t.Helper()
	enqueue(t, db, "x")
	w := worker(t, db, func(_ context.Context, m *Mail) error {
		must(t, db.Exec("UPDATE mails SET claimed_until = now() + interval '1 hour' WHERE id = ?", m.ID).Error)
		try(m, *reload(t, db, m.ID).ClaimedUntil)
		return nil
	}, work.Lease(30*time.Minute))
	if drain(t, w) != 1 || states(t, db)["done"] != 1 {
		t.Errorf("states %v", states(t, db))
	}
}

// A write of a struct does not write the end of the lease, because the worker renews it.
func TestSave_leavesTheLease(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(db *gorm.DB, m *Mail) error{
		"Save":            func(db *gorm.DB, m *Mail) error { return db.Save(m).Error },
		"Save of nil":     func(db *gorm.DB, m *Mail) error { m.ClaimedUntil = nil; return db.Save(m).Error },
		"Save of a value": func(db *gorm.DB, m *Mail) error { err := db.Save(*m).Error; m.Version++; return err },
		"Save of a slice": func(db *gorm.DB, m *Mail) error { return db.Save([]*Mail{m}).Error },
		"Save in a transaction": func(db *gorm.DB, m *Mail) error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Save(m).Error })
		},
		"Save of what was read": func(db *gorm.DB, m *Mail) error {
			old := m.ClaimedUntil
			must(t, db.First(m).Error)
			m.ClaimedUntil, m.Text = old, "y"
			return db.Save(m).Error
		},
		"Updates":                func(db *gorm.DB, m *Mail) error { return db.Updates(m).Error },
		"Updates of a copy":      func(db *gorm.DB, m *Mail) error { return db.Model(m).Updates(*m).Error },
		"Updates of all columns": func(db *gorm.DB, m *Mail) error { return db.Model(m).Select("*").Updates(m).Error },
		"UpdateColumns":          func(db *gorm.DB, m *Mail) error { return db.Model(m).UpdateColumns(m).Error },
		"upsert of all columns": func(db *gorm.DB, m *Mail) error {
			return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(m).Error
		},
		"a field": func(db *gorm.DB, m *Mail) error { return db.Model(m).Update("text", "y").Error },
		"Assign": func(db *gorm.DB, m *Mail) error {
			with, now := *m, Mail{}
			with.ClaimedUntil = nil
			err := db.Where("id = ?", m.ID).Assign(with).FirstOrCreate(&now).Error
			*m = now
			return err
		},
		"Assign and Omit": func(db *gorm.DB, m *Mail) error {
			with, now := *m, Mail{}
			err := db.Where("id = ?", m.ID).Omit("ClaimedUntil").Assign(with).FirstOrCreate(&now).Error
			*m = now
			return err
		},
		"SaveMerged": func(db *gorm.DB, m *Mail) error {
			base := *m
			base.Text = "x"
			return gormlock.SaveMerged(db, m, &base)
		},
		"Save without the version": func(db *gorm.DB, m *Mail) error { return db.Clauses(gormlock.IgnoreVersion()).Save(m).Error },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			inHandler(t, db, func(m *Mail, renewed time.Time) {
				m.Text = "y"
				if err := write(db, m); err != nil {
					t.Error(err)
				}
				if now := reload(t, db, m.ID); !now.ClaimedUntil.Equal(renewed) || now.Text != "y" || now.Version != m.Version {
					t.Errorf("%s instead of %s, text %q, version %d of %d", now.ClaimedUntil, renewed, now.Text, now.Version, m.Version)
				}
				if err := db.Save(m).Error; err != nil { // once more
					t.Error(err)
				}
			})
		})
	}
}

// An update that names the end of the lease writes it.
func TestUpdate_writesTheLeaseIfItIsNamed(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(48 * time.Hour).Truncate(time.Second)
	with := Mail{Job: work.Job{ClaimedUntil: &later}, Text: "y"}
	for name, write := range map[string]func(db *gorm.DB, m *Mail) error{
		"Update":    func(db *gorm.DB, m *Mail) error { return db.Model(m).Update("ClaimedUntil", later).Error },
		"by column": func(db *gorm.DB, m *Mail) error { return db.Model(m).UpdateColumn("claimed_until", later).Error },
		"map": func(db *gorm.DB, m *Mail) error {
			return db.Model(m).Updates(map[string]any{"text": "y", "claimed_until": &later}).Error
		},
		"Select": func(db *gorm.DB, m *Mail) error {
			return db.Model(m).Select("Text", "ClaimedUntil").Updates(with).Error
		},
		"Select a column": func(db *gorm.DB, m *Mail) error { return db.Model(m).Select("mails.claimed_until").Updates(with).Error },
		"generics": func(db *gorm.DB, m *Mail) error {
			_, err := gorm.G[Mail](db).Where("id = ?", m.ID).Update(t.Context(), "claimed_until", later)
			return err
		},
		"after a Save with the same db": func(db *gorm.DB, m *Mail) error {
			q := db.Model(m)
			return errors.Join(q.Updates(m).Error, q.Update("claimed_until", later).Error)
		},
		"SaveMerged": func(db *gorm.DB, m *Mail) error {
			must(t, db.First(m).Error)
			base := *m
			m.ClaimedUntil = &later
			return gormlock.SaveMerged(db, m, &base)
		},
		"upsert": func(db *gorm.DB, m *Mail) error {
			m.ClaimedUntil = &later
			return db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"claimed_until"})}).Create(m).Error
		},
		"Assign of a map": func(db *gorm.DB, m *Mail) error {
			return db.Where("id = ?", m.ID).Assign(map[string]any{"claimed_until": later}).FirstOrCreate(&Mail{}).Error
		},
		"Assign of a field": func(db *gorm.DB, m *Mail) error {
			return db.Where("id = ?", m.ID).Assign(with, "ClaimedUntil").FirstOrCreate(&Mail{}).Error
		},
		"Claim": func(db *gorm.DB, m *Mail) error {
			got, err := gormlock.Claim[Mail](db, 1, map[string]any{"ClaimedUntil": later}, func(q *gorm.DB) *gorm.DB { return q.Where("id = ?", m.ID) })
			if len(got) != 1 {
				t.Errorf("%d claimed", len(got))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			inHandler(t, db, func(m *Mail, _ time.Time) {
				if err := write(db, m); err != nil {
					t.Error(err)
				}
				if now := reload(t, db, m.ID); !now.ClaimedUntil.Equal(later) {
					t.Errorf("%s", now.ClaimedUntil)
				}
			})
		})
	}
}

// A struct with another end of the lease than the model's struct would silently be left out.
func TestUpdates_refusesALeaseOfItsOwn(t *testing.T) {
	t.Parallel()
	db := open(t)
	inHandler(t, db, func(m *Mail, renewed time.Time) {
		later := time.Now().Add(48 * time.Hour)
		for _, q := range []*gorm.DB{db.Model(m), db.Model(&Mail{}).Where("id = ?", m.ID)} {
			if err := q.Updates(Mail{Job: work.Job{ClaimedUntil: &later}, Text: "y"}).Error; !errors.Is(err, gormlock.ErrOption) {
				t.Errorf("%v", err)
			}
		}
		// FirstOrCreate makes a map of a struct.
		for _, with := range []any{*m, m} {
			if err := db.Where("id = ?", m.ID).Assign(with).FirstOrCreate(&Mail{}).Error; !errors.Is(err, gormlock.ErrOption) {
				t.Errorf("%v", err)
			}
		}
		if now := reload(t, db, m.ID); !now.ClaimedUntil.Equal(renewed) || now.Text != "x" {
			t.Errorf("%s, %q", now.ClaimedUntil, now.Text)
		}
	})
}

// A struct that is too old does not overwrite columns that a worker maintains and that move the version.
func TestSave_ofAnOldStructIsStale(t *testing.T) {
	t.Parallel()
	db := open(t)
	enqueue(t, db, "x")
	var m *Mail
	write := func(when string) {
		t.Helper()
		if err := db.Save(m).Error; !errors.Is(err, gormlock.ErrStale) {
			t.Errorf("%s: %v", when, err)
		}
	}
	m = enqueue(t, db, "y")[0]
	fail := errors.New("fails")
	w := worker(t, db, func(_ context.Context, now *Mail) error {
		if now.ID == m.ID {
			write("claimed since")
			m = reload(t, db, m.ID)
		}
		return fail
	}, work.Backoff(func(int) time.Duration { return time.Hour }))
	drain(t, w)
	write("failed since")
	must(t, db.Exec("UPDATE mails SET state = 'running', run_at = now(), claimed_by = 'gone', claimed_until = now() - interval '1 s'").Error)
	m = reload(t, db, m.ID)
	fail = work.Dead(fail)
	drain(t, w)
	write("taken over since")
	m = reload(t, db, m.ID)
	if n, err := work.Requeue(t.Context(), db, &Mail{}, m.ID); n != 1 || err != nil {
		t.Errorf("%d, %v: %+v", n, err, m)
	}
	write("requeued since")
}
