package work_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/work"
)

// runsElsewhere returns a job that the worker of another process runs.
func runsElsewhere(t *testing.T, db *gorm.DB) *Mail {
	t.Helper()
	m := enqueue(t, db, "x")[0]
	must(t, db.Exec("UPDATE mails SET state = 'running', claimed_by = 'elsewhere:1#1', claimed_until = now() + interval '1 hour', attempts = 1, version = 2 WHERE id = ?", m.ID).Error)
	return reload(t, db, m.ID)
}

type takingForm func(db *gorm.DB, m *Mail) error

// forget makes the struct look like that of a job that does not run.
func forget(m *Mail, state string) *Mail {
	m.State, m.ClaimedUntil = state, nil
	return m
}

func keyed(m *Mail) *Mail { return &Mail{Job: work.Job{ID: m.ID, Version: m.Version}} }

func narrow(db *gorm.DB, m *Mail) *Mail {
	var x Mail
	if err := db.Select("id", "version", "text").First(&x, m.ID).Error; err != nil {
		panic(err)
	}
	return &x
}

func takingForms() map[string]takingForm {
	onKey := []clause.Column{{Name: "id"}}
	all := clause.OnConflict{UpdateAll: true}
	return map[string]takingForm{
		"Save":                 func(db *gorm.DB, m *Mail) error { return db.Save(forget(m, "ready")).Error },
		"Save, later":          func(db *gorm.DB, m *Mail) error { return db.Save(forget(m, "later")).Error },
		"Save, done":           func(db *gorm.DB, m *Mail) error { return db.Save(forget(m, "done")).Error },
		"Save, no state":       func(db *gorm.DB, m *Mail) error { return db.Save(forget(m, "")).Error },
		"Save of a value":      func(db *gorm.DB, m *Mail) error { return db.Save(*forget(m, "ready")).Error },
		"Save of a slice":      func(db *gorm.DB, m *Mail) error { return db.Save([]*Mail{forget(m, "ready")}).Error },
		"Save in two":          func(db *gorm.DB, m *Mail) error { return db.Save([]Mail{{Text: "new"}, *forget(m, "ready")}).Error },
		"Save, all by Select":  func(db *gorm.DB, m *Mail) error { return db.Select("*").Save(forget(m, "ready")).Error },
		"Save, state selected": func(db *gorm.DB, m *Mail) error { return db.Select("State").Save(forget(m, "ready")).Error },
		"Save, others omitted": func(db *gorm.DB, m *Mail) error { return db.Omit("Text").Save(forget(m, "ready")).Error },
		"Save of a form":       func(db *gorm.DB, m *Mail) error { f := keyed(m); f.Text = "y"; return db.Save(f).Error },
		"Save, another claim":  func(db *gorm.DB, m *Mail) error { m.ClaimedBy = ""; return db.Save(m).Error },
		"Save without the version": func(db *gorm.DB, m *Mail) error {
			return db.Clauses(gormlock.IgnoreVersion()).Save(forget(m, "ready")).Error
		},
		"Save of an old one without the version": func(db *gorm.DB, m *Mail) error {
			m.Version = 1
			return db.Clauses(gormlock.IgnoreVersion()).Save(forget(m, "ready")).Error
		},
		"Save of a slice without the version": func(db *gorm.DB, m *Mail) error {
			return db.Clauses(gormlock.IgnoreVersion()).Save([]*Mail{forget(m, "ready")}).Error
		},
		"Save under conditions": func(db *gorm.DB, m *Mail) error { return db.Where("text = 'x'").Save(forget(m, "ready")).Error },
		"SaveMerged": func(db *gorm.DB, m *Mail) error {
			base := *m
			return gormlock.SaveMerged(db, forget(m, "ready"), &base)
		},
		"Updates": func(db *gorm.DB, m *Mail) error { return db.Updates(forget(m, "ready")).Error },
		"Updates of a struct": func(db *gorm.DB, m *Mail) error {
			return db.Model(forget(m, "ready")).Updates(Mail{Job: work.Job{State: "ready"}}).Error
		},
		"Updates of a form": func(db *gorm.DB, m *Mail) error {
			return db.Model(keyed(m)).Updates(struct{ State string }{"ready"}).Error
		},
		"a map": func(db *gorm.DB, m *Mail) error {
			return db.Model(keyed(m)).Updates(map[string]any{"state": "ready", "claimed_until": nil}).Error
		},
		"a map, by the field": func(db *gorm.DB, m *Mail) error {
			return db.Model(keyed(m)).Updates(map[string]any{"State": "ready"}).Error
		},
		"a map of the claim": func(db *gorm.DB, m *Mail) error {
			return db.Model(keyed(m)).Updates(map[string]any{"claimed_by": ""}).Error
		},
		"Update":           func(db *gorm.DB, m *Mail) error { return db.Model(keyed(m)).Update("state", "ready").Error },
		"Update, no state": func(db *gorm.DB, m *Mail) error { return db.Model(keyed(m)).Update("state", "").Error },
		"Update of an expression": func(db *gorm.DB, m *Mail) error {
			return db.Model(keyed(m)).Update("state", gorm.Expr("'rea' || 'dy'")).Error
		},
		"Update of a query": func(db *gorm.DB, m *Mail) error {
			return db.Model(keyed(m)).Update("state", db.Raw("SELECT 'ready'")).Error
		},
		"Update of what was read": func(db *gorm.DB, m *Mail) error { return db.Model(narrow(db, m)).Update("state", "ready").Error },
		"UpdateColumn":            func(db *gorm.DB, m *Mail) error { return db.Model(keyed(m)).UpdateColumn("State", "ready").Error },
		"UpdateColumns": func(db *gorm.DB, m *Mail) error {
			return db.Model(keyed(m)).UpdateColumns(Mail{Job: work.Job{State: "ready"}}).Error
		},
		"Update of a value":  func(db *gorm.DB, m *Mail) error { return db.Model(*keyed(m)).Update("state", "ready").Error },
		"Update of a slice":  func(db *gorm.DB, m *Mail) error { return db.Model([]*Mail{keyed(m)}).Update("state", "ready").Error },
		"Update of an array": func(db *gorm.DB, m *Mail) error { return db.Model(&[1]Mail{*keyed(m)}).Update("state", "ready").Error },
		"Update of one and a free": func(db *gorm.DB, m *Mail) error {
			other := &Mail{Text: "free"}
			if err := work.Enqueue(db, other); err != nil {
				return err
			}
			return db.Model([]*Mail{keyed(other), keyed(m)}).Update("state", "later").Error
		},
		"Update under conditions": func(db *gorm.DB, m *Mail) error {
			return db.Model(keyed(m)).Where("text = 'x'").Update("state", "ready").Error
		},
		"Update, Or": func(db *gorm.DB, m *Mail) error {
			return db.Model(keyed(m)).Where("text = 'y'").Or("text = 'x'").Update("state", "ready").Error
		},
		"Update, returning": func(db *gorm.DB, m *Mail) error {
			return db.Model(keyed(m)).Clauses(clause.Returning{}).Update("state", "ready").Error
		},
		"Update, unscoped": func(db *gorm.DB, m *Mail) error { return db.Unscoped().Model(keyed(m)).Update("state", "ready").Error },
		"Update without the version": func(db *gorm.DB, m *Mail) error {
			return db.Clauses(gormlock.IgnoreVersion()).Model(&Mail{Job: work.Job{ID: m.ID}}).Update("state", "ready").Error
		},
		"Update that keeps the version": func(db *gorm.DB, m *Mail) error {
			return db.Clauses(gormlock.PreserveVersion()).Model(keyed(m)).Update("state", "ready").Error
		},
		"ExpectVersion": func(db *gorm.DB, m *Mail) error {
			return db.Clauses(gormlock.ExpectVersion(m.Version)).Model(&Mail{Job: work.Job{ID: m.ID}}).Update("state", "ready").Error
		},
		"IfUnchanged": func(db *gorm.DB, m *Mail) error {
			before := *m
			return db.Clauses(gormlock.IfUnchanged(&before, "text")).Model(keyed(m)).Update("state", "ready").Error
		},
		"Select": func(db *gorm.DB, m *Mail) error { return db.Model(keyed(m)).Select("State").Updates(Mail{}).Error },
		"Select, all": func(db *gorm.DB, m *Mail) error {
			return db.Model(keyed(m)).Select("*").Updates(forget(m, "ready")).Error
		},
		"Omit": func(db *gorm.DB, m *Mail) error { return db.Omit("Text").Updates(forget(m, "ready")).Error },
		"a SET": func(db *gorm.DB, m *Mail) error {
			return db.Model(keyed(m)).Where("text = 'x'").Clauses(clause.Set{{Column: clause.Column{Name: "state"}, Value: "ready"}}).Updates(map[string]any{"text": "y"}).Error
		},
		"G of a struct": func(db *gorm.DB, m *Mail) error {
			_, err := gorm.G[Mail](db).Updates(context.Background(), *forget(m, "ready"))
			return err
		},
		"Assign": func(db *gorm.DB, m *Mail) error {
			return db.Where("id = ?", m.ID).Assign(map[string]any{"state": "ready"}).FirstOrCreate(&Mail{}).Error
		},
		"Assign of a struct": func(db *gorm.DB, m *Mail) error {
			return db.Where("id = ?", m.ID).Assign(Mail{Job: work.Job{State: "ready"}}).FirstOrCreate(&Mail{}).Error
		},
		"in a transaction": func(db *gorm.DB, m *Mail) error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Save(forget(m, "ready")).Error })
		},
		"upsert of all": func(db *gorm.DB, m *Mail) error { return db.Clauses(all).Create(forget(m, "ready")).Error },
		"upsert of a new one": func(db *gorm.DB, m *Mail) error {
			return db.Clauses(all).Create(&Mail{Job: work.Job{ID: m.ID}, Text: "seed"}).Error
		},
		"upsert of two": func(db *gorm.DB, m *Mail) error {
			return db.Clauses(all).Create([]Mail{{Text: "n"}, {Job: work.Job{ID: m.ID}, Text: "seed"}}).Error
		},
		"upsert, IgnoreVersion": func(db *gorm.DB, m *Mail) error {
			return db.Clauses(all, gormlock.IgnoreVersion()).Create(forget(m, "ready")).Error
		},
		"upsert of a map": func(db *gorm.DB, m *Mail) error {
			return db.Model(&Mail{}).Clauses(clause.OnConflict{Columns: onKey, UpdateAll: true}).Create(map[string]any{"id": m.ID, "state": "ready", "text": "y"}).Error
		},
		"upsert of maps": func(db *gorm.DB, m *Mail) error {
			return db.Model(&Mail{}).Clauses(clause.OnConflict{Columns: onKey, DoUpdates: clause.AssignmentColumns([]string{"state"})}).Create(&[]map[string]any{{"id": m.ID, "state": "ready", "text": "y"}}).Error
		},
		"upsert of the state": func(db *gorm.DB, m *Mail) error {
			return db.Clauses(clause.OnConflict{Columns: onKey, DoUpdates: clause.AssignmentColumns([]string{"state"})}).Create(forget(m, "ready")).Error
		},
		"upsert of the claim": func(db *gorm.DB, m *Mail) error {
			m.ClaimedBy = ""
			return db.Clauses(clause.OnConflict{Columns: onKey, DoUpdates: clause.AssignmentColumns([]string{"claimed_by"})}).Create(m).Error
		},
		"upsert that sets the state": func(db *gorm.DB, m *Mail) error {
			return db.Clauses(clause.OnConflict{Columns: onKey, DoUpdates: clause.Assignments(map[string]any{"state": "ready"})}).Create(&Mail{Job: work.Job{ID: m.ID}}).Error
		},
		"upsert that computes the state": func(db *gorm.DB, m *Mail) error {
			return db.Clauses(clause.OnConflict{Columns: onKey, DoUpdates: clause.Assignments(map[string]any{"state": gorm.Expr("excluded.state")})}).Create(forget(m, "ready")).Error
		},
		"upsert under a condition": func(db *gorm.DB, m *Mail) error {
			c := clause.OnConflict{Columns: onKey, UpdateAll: true, Where: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "mails.text = 'x'"}}}}
			return db.Clauses(c).Create(forget(m, "ready")).Error
		},
		"G, upsert": func(db *gorm.DB, m *Mail) error {
			return gorm.G[Mail](db, all).Create(context.Background(), &Mail{Job: work.Job{ID: m.ID}})
		},
		"values of a struct": func(db *gorm.DB, m *Mail) error {
			return db.Model(&Mail{}).Where("id = ?", m.ID).Updates(*forget(m, "ready")).Error
		},
		"values of a pointer": func(db *gorm.DB, m *Mail) error {
			return db.Model(&Mail{}).Where("id = ?", m.ID).Updates(forget(m, "ready")).Error
		},
		"G, values of a struct": func(db *gorm.DB, m *Mail) error {
			_, err := gorm.G[Mail](db).Where("id = ?", m.ID).Updates(context.Background(), *forget(m, "ready"))
			return err
		},
	}
}

// Post has jobs.
type Post struct {
	ID    int64
	Mails []Mail `gorm:"foreignKey:AccountID"`
}

// No write of a struct changes the State of a job that another process runs: the job would be handed out again. The server decides, whatever the
// struct holds.
func TestState_ofAJobThatRunsElsewhere(t *testing.T) {
	t.Parallel()
	for name, write := range takingForms() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			was := runsElsewhere(t, db)
			given := *was
			if err := write(db, &given); !errors.Is(err, gormlock.ErrOption) {
				t.Errorf("%v", err)
			}
			stays(t, db, was)
		})
	}
}

func stays(t *testing.T, db *gorm.DB, was *Mail) {
	t.Helper()
	if now := reload(t, db, was.ID); now.State != was.State || now.ClaimedBy != was.ClaimedBy || now.Version != was.Version || now.Text != was.Text {
		t.Errorf("%+v", now)
	}
	var n int64
	if must(t, db.Model(&Mail{}).Where("text = 'new' OR state = 'later'").Count(&n).Error); n > 0 {
		t.Errorf("%d others were written", n)
	}
}

// The same holds if GORM saves the job along with something else, and if the program ignores the error in its transaction.
func TestState_ofAJobThatRunsElsewhere_besides(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]takingForm{
		"with its post": func(db *gorm.DB, m *Mail) error {
			return db.Session(&gorm.Session{FullSaveAssociations: true}).Save(&Post{ID: 1, Mails: []Mail{*forget(m, "ready")}}).Error
		},
		"with others of a post": func(db *gorm.DB, m *Mail) error {
			return db.Session(&gorm.Session{FullSaveAssociations: true}).Updates(&Post{ID: 1, Mails: []Mail{{Text: "new"}, *forget(m, "ready")}}).Error
		},
		"the error ignored": func(db *gorm.DB, m *Mail) error {
			return db.Transaction(func(tx *gorm.DB) error {
				_ = tx.Save([]*Mail{{Text: "new"}, forget(m, "ready")}).Error
				return nil
			})
		},
		"the error of an update ignored": func(db *gorm.DB, m *Mail) error {
			return db.Transaction(func(tx *gorm.DB) error {
				other := &Mail{Text: "new"}
				must(t, work.Enqueue(tx, other))
				_ = tx.Model([]*Mail{keyed(other), keyed(m)}).Update("state", "later").Error
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			must(t, db.AutoMigrate(&Post{}))
			must(t, db.Create(&Post{ID: 1}).Error)
			was := runsElsewhere(t, db)
			given := *was
			if err := write(db, &given); !errors.Is(err, gormlock.ErrOption) {
				t.Errorf("%v", err)
			}
			stays(t, db, was)
		})
	}
}

// Writes that leave the State as it is work for a running job, and writes that change it work for a job that does not run.
func TestState_writesThatGoOn(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]takingForm{
		"Save":            func(db *gorm.DB, m *Mail) error { m.Text = "y"; return db.Save(m).Error },
		"Save of a slice": func(db *gorm.DB, m *Mail) error { m.Text = "y"; return db.Save([]*Mail{m}).Error },
		"Save in two":     func(db *gorm.DB, m *Mail) error { m.Text = "y"; return db.Save([]Mail{{}, *m}).Error },
		"Omit":            func(db *gorm.DB, m *Mail) error { m.Text = "y"; return db.Omit("State").Save(forget(m, "ready")).Error },
		"Omit, slice": func(db *gorm.DB, m *Mail) error {
			m.Text = "y"
			return db.Omit("State").Save([]*Mail{forget(m, "ready")}).Error
		},
		"Update": func(db *gorm.DB, m *Mail) error { return db.Model(forget(m, "ready")).Update("text", "y").Error },
		"the same state": func(db *gorm.DB, m *Mail) error {
			return db.Model(m).Updates(map[string]any{"text": "y", "state": "running"}).Error
		},
		"upsert of its own": func(db *gorm.DB, m *Mail) error { return upsertOfText(db, &Mail{Job: work.Job{ID: m.ID}, Text: "y"}) },
		"its conditions": func(db *gorm.DB, m *Mail) error {
			return db.Model(&Mail{}).Where("id = ?", m.ID).Updates(map[string]any{"state": "ready", "text": "y"}).Error
		},
		"its conditions, ExpectVersion": func(db *gorm.DB, m *Mail) error {
			return db.Clauses(gormlock.ExpectVersion(m.Version)).Model(&Mail{}).Where("id = ?", m.ID).Updates(map[string]any{"state": "ready", "text": "y"}).Error
		},
		"G, its conditions": func(db *gorm.DB, m *Mail) error {
			_, err := gorm.G[Mail](db).Where("id = ?", m.ID).Updates(context.Background(), Mail{Job: work.Job{State: "ready"}, Text: "y"})
			return err
		},
		"all in one": func(db *gorm.DB, _ *Mail) error {
			return db.Session(&gorm.Session{AllowGlobalUpdate: true}).Model(&Mail{}).Updates(map[string]any{"state": "ready", "text": "y"}).Error
		},
		"SaveMerged": func(db *gorm.DB, m *Mail) error { base := *m; m.Text = "y"; return gormlock.SaveMerged(db, m, &base) },
		"a free one, saved": func(db *gorm.DB, m *Mail) error {
			giveBack(db, m)
			m.State, m.Text = "dead", "y"
			return db.Save(m).Error
		},
		"a free one, update": func(db *gorm.DB, m *Mail) error {
			giveBack(db, m)
			return db.Model(m).Updates(map[string]any{"state": "later", "text": "y"}).Error
		},
		"free ones": func(db *gorm.DB, m *Mail) error {
			giveBack(db, m)
			m.State, m.Text = "dead", "y"
			return db.Save([]*Mail{m}).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			m := runsElsewhere(t, db)
			must(t, write(db, m))
			if now := reload(t, db, m.ID); now.Text != "y" {
				t.Errorf("%+v", now)
			}
		})
	}
}

func upsertOfText(db *gorm.DB, m *Mail) error {
	return db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"text"})}).Create(m).Error
}

func giveBack(db *gorm.DB, m *Mail) {
	db.Exec("UPDATE mails SET state = 'ready', claimed_by = '', claimed_until = NULL WHERE id = ?", m.ID)
	db.First(m, m.ID)
}

// A struct that is older than its row is stale, whatever its State. If its own conditions do not hold, nothing is written.
func TestState_ofAnOldStruct(t *testing.T) {
	t.Parallel()
	db := open(t)
	was := runsElsewhere(t, db)
	old := *was
	old.Version--
	for name, err := range map[string]error{
		"Save": db.Save(forget(&old, "ready")).Error, "slice": db.Save([]*Mail{forget(&old, "ready")}).Error, "Update": db.Model(keyed(&old)).Update("state", "ready").Error,
	} {
		if !errors.Is(err, gormlock.ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
	}
	none := db.Model(keyed(was)).Where("text = 'other'").Update("state", "ready")
	if must(t, none.Error); none.RowsAffected != 0 {
		t.Errorf("%d rows", none.RowsAffected)
	}
	stays(t, db, was)
}

// A write that would leave a job without a State is an error, whether it runs or not, because no worker would take it.
func TestState_none(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]takingForm{
		"Save of a form":  func(db *gorm.DB, m *Mail) error { return db.Save(keyed(m)).Error },
		"Save of a slice": func(db *gorm.DB, m *Mail) error { return db.Save([]*Mail{keyed(m)}).Error },
		"Update":          func(db *gorm.DB, m *Mail) error { return db.Model(m).Update("state", "").Error },
		"Update to NULL":  func(db *gorm.DB, m *Mail) error { return db.Model(m).Update("state", nil).Error },
		"Select":          func(db *gorm.DB, m *Mail) error { return db.Model(m).Select("State").Updates(&Mail{}).Error },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			was := reload(t, db, enqueue(t, db, "x")[0].ID)
			given := *was
			if err := write(db, &given); !errors.Is(err, gormlock.ErrOption) {
				t.Errorf("%v", err)
			}
			stays(t, db, was)
		})
	}
}

// One job does not run in two handlers at once because a third handler writes its struct meanwhile, in its own process.
func TestRun_anothersSave(t *testing.T) {
	t.Parallel()
	db := open(t)
	enqueue(t, db, "x")
	runs, go1 := make(chan int64, 10), make(chan struct{})
	start(t, worker(t, db, func(_ context.Context, m *Mail) error {
		runs <- m.ID
		<-go1
		return nil
	}, work.Workers(2), work.Poll(10*time.Millisecond)))
	id := <-runs
	now := reload(t, db, id)
	now.State, now.ClaimedUntil, now.ClaimedBy = "ready", nil, ""
	if err := db.Save(now).Error; !errors.Is(err, gormlock.ErrOption) {
		t.Errorf("%v", err)
	}
	if err := db.Model(keyed(reload(t, db, id))).Update("state", "ready").Error; !errors.Is(err, gormlock.ErrOption) {
		t.Errorf("%v", err)
	}
	must(t, work.Enqueue(db, &Mail{Text: "y"}))
	if other := <-runs; other == id {
		t.Error("it runs twice")
	}
	close(go1)
	eventually(t, "both are done", func() bool { return states(t, db)["done"] == 2 })
	if len(runs) > 0 {
		t.Errorf("%d more runs", len(runs))
	}
}
