package versions_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	Margin struct {
		A string
		B int
	}
	margined struct {
		ID   int64
		Name string
		*Margin
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	watched struct {
		ID      int64
		Amount  int64
		Worker  string
		Note    *string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
)

// What a write returns reaches an embedded struct whose pointer is nil, and empties one of which all is NULL.
func TestReturned_intoAnEmbeddedPointer(t *testing.T) {
	t.Parallel()
	made := func(t *testing.T, db *gorm.DB, from *Margin) *margined {
		t.Helper()
		m := margined{Name: "x"}
		if from != nil {
			own := *from
			m.Margin = &own
		}
		stand.Must(t, db.Create(&m).Error)
		return &m
	}
	rival := func(t *testing.T, db *gorm.DB, m *margined, values map[string]any) {
		t.Helper()
		stand.Must(t, db.Model(&margined{}).Where("id = ?", m.ID).Updates(values).Error)
	}
	for name, c := range map[string]struct {
		from  *Margin
		rival map[string]any
		write func(db *gorm.DB, m *margined) error
	}{
		"what the server computes": {nil, nil, func(db *gorm.DB, m *margined) error {
			return db.Model(m).Update("b", gorm.Expr("COALESCE(b, 0) + 1")).Error
		}},
		"ExpectVersion": {nil, map[string]any{"a": "rival"}, func(db *gorm.DB, m *margined) error {
			return db.Clauses(gormlock.ExpectVersion(2)).Model(m).Update("name", "y").Error
		}},
		"a form's version": {nil, map[string]any{"b": 7}, func(db *gorm.DB, m *margined) error {
			return db.Model(m).Updates(map[string]any{"name": "y", "version": 2}).Error
		}},
		"an upsert": {nil, map[string]any{"a": "rival"}, func(db *gorm.DB, m *margined) error {
			m.Version = 0
			by := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}
			return db.Clauses(by).Create(m).Error
		}},
		"NULL": {&Margin{A: "old", B: 3}, map[string]any{"a": nil, "b": nil}, func(db *gorm.DB, m *margined) error {
			return db.Model(m).Updates(map[string]any{"name": "y", "version": 2}).Error
		}},
		"NULL, ExpectVersion": {&Margin{A: "old", B: 3}, map[string]any{"a": nil, "b": nil}, func(db *gorm.DB, m *margined) error {
			return db.Clauses(gormlock.ExpectVersion(2)).Model(m).Update("name", "y").Error
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stand.OnBoth(t, []any{&margined{}}, func(t *testing.T, db *gorm.DB) {
				m := made(t, db, c.from)
				if c.rival != nil {
					rival(t, db, m, c.rival)
				}
				stand.Must(t, c.write(db, m))
				row := func() map[string]any {
					now := map[string]any{}
					stand.Must(t, db.Model(&margined{}).Select("COALESCE(a, '') AS a, COALESCE(b, 0) AS b").Where("id = ?", m.ID).Take(&now).Error)
					return now
				}
				before := row()
				if err := db.Save(m).Error; err != nil {
					stand.MustBeUnread(t, err)
				}
				stand.Equal(t, "a", row()["a"], before["a"])
				stand.Equal(t, "b", row()["b"], before["b"])
				_ = db.Transaction(func(tx *gorm.DB) error { // and a rollback takes it back
					again := stand.Row[margined](t, tx, m.ID)
					stand.Must(t, tx.Model(&again).Update("b", gorm.Expr("COALESCE(b, 0) + 1")).Error)
					*m = again
					return gorm.ErrInvalidTransaction
				})
			})
		})
	}
}

// The columns that RETURNING names reach the struct, NULL too.
func TestReturned_whereATriggerSetsNull(t *testing.T) {
	t.Parallel()
	note := "note"
	all := clause.Returning{}
	some := clause.Returning{Columns: []clause.Column{{Name: "worker"}, {Name: "Note"}}}
	for name, write := range map[string]func(db *gorm.DB, w *watched) error{
		"Update":         func(db *gorm.DB, w *watched) error { return db.Clauses(all).Model(w).Update("amount", 0).Error },
		"Update of some": func(db *gorm.DB, w *watched) error { return db.Clauses(some).Model(w).Update("amount", 0).Error },
		"Updates": func(db *gorm.DB, w *watched) error {
			return db.Clauses(all).Model(w).Updates(map[string]any{"amount": 0}).Error
		},
		"Save":          func(db *gorm.DB, w *watched) error { w.Amount = 0; return db.Clauses(all).Save(w).Error },
		"Save by value": func(db *gorm.DB, w *watched) error { w.Amount = 0; return db.Clauses(all).Save(&[]*watched{w}).Error },
		"ExpectVersion": func(db *gorm.DB, w *watched) error {
			return db.Clauses(all, gormlock.ExpectVersion(1)).Model(w).Update("amount", 0).Error
		},
		"IgnoreVersion": func(db *gorm.DB, w *watched) error {
			return db.Clauses(all, gormlock.IgnoreVersion()).Model(w).Update("amount", 0).Error
		},
		"PreserveVersion": func(db *gorm.DB, w *watched) error {
			return db.Clauses(all, gormlock.PreserveVersion()).Model(w).Update("amount", 0).Error
		},
		"a bulk update": func(db *gorm.DB, w *watched) error {
			id := w.ID
			w.ID = 0
			return db.Clauses(all).Model(w).Where("id = ?", id).Update("amount", 0).Error
		},
		"a bulk update, as text": func(db *gorm.DB, w *watched) error {
			id := w.ID
			w.ID = 0
			return db.Clauses(clause.Returning{Columns: []clause.Column{{Name: "id, version", Raw: true}}}).Model(w).Where("id = ?", id).Update("amount", 0).Error
		},
		"a bulk update, of a slice": func(db *gorm.DB, w *watched) error {
			some := clause.Returning{Columns: []clause.Column{{Name: "id"}, {Name: "version"}}}
			used := []watched{{Worker: "worker", Note: &note}}
			err := db.Clauses(some).Model(&used).Where("id = ?", w.ID).Update("amount", 0).Error
			*w = used[0]
			return err
		},
		"a create": func(db *gorm.DB, w *watched) error {
			*w = watched{Worker: "worker", Note: &note}
			return db.Clauses(all).Create(w).Error
		},
		"a create of some": func(db *gorm.DB, w *watched) error {
			*w = watched{Worker: "worker", Note: &note}
			return db.Clauses(some).Create(w).Error
		},
		"a create of several": func(db *gorm.DB, w *watched) error {
			*w = watched{Worker: "worker", Note: &note}
			return db.Clauses(all).Create([]*watched{{Amount: 1}, w, {Amount: 1}}).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&watched{}})
			stand.Must(t, db.Exec(`CREATE FUNCTION idle() RETURNS trigger LANGUAGE plpgsql AS
				$$BEGIN IF NEW.amount = 0 THEN NEW.worker := NULL; NEW.note := NULL; END IF; RETURN NEW; END$$;
				CREATE TRIGGER idle BEFORE INSERT OR UPDATE ON watcheds FOR EACH ROW EXECUTE FUNCTION idle()`).Error)
			w := watched{Amount: 1, Worker: "worker", Note: &note}
			stand.Must(t, db.Create(&w).Error)
			stand.Must(t, write(db, &w))
			stand.Equal(t, "worker", w.Worker, "")
			if w.Note != nil {
				t.Errorf("note %q", *w.Note)
			}
			w.Amount = 5
			if err := db.Save(&w).Error; err != nil {
				stand.MustBeUnread(t, err)
			}
			stand.Equal(t, "stored", stand.Row[watched](t, db, w.ID).Worker, "")
		})
	}
	t.Run("which finds no row", func(t *testing.T) {
		t.Parallel()
		db := stand.Versioned(t, []any{&watched{}})
		w := watched{Worker: "worker", Amount: 3}
		stand.Must(t, db.Clauses(all).Model(&w).Where("id = 70").Update("amount", 0).Error)
		stand.Equal(t, "worker", w.Worker, "worker")
	})
}
