package transactions_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// write stands in a spelling for a versioned write of the struct.
const write = "write"

// spelling is one way to take a write back, or not to. GORM commits the transaction at its end.
type spelling struct {
	name  string
	texts []string
	want  int64 // the version in the struct at the end, stand.Unread if it is not known

	several bool // a text has several statements
}

var spellings = []spelling{
	{"a savepoint that is kept", []string{"SAVEPOINT a", write, "RELEASE SAVEPOINT a"}, 2, false},
	{"a savepoint", []string{"SAVEPOINT a", write, "ROLLBACK TO SAVEPOINT a"}, 1, false},
	{"in small letters", []string{"savepoint a", write, "rollback to a"}, 1, false},
	{"in mixed letters", []string{"SavePoint Aa", write, "RollBack Work To SavePoint aA"}, 1, false},
	{"quoted", []string{`SAVEPOINT "A b;""c"`, write, `ROLLBACK TRANSACTION TO "A b;""c"`}, 1, false},
	{"quoted here only", []string{`SAVEPOINT "abc"`, write, `ROLLBACK TO ABC`}, 1, false},
	{"in letters beyond ASCII", []string{"SAVEPOINT é", "SAVEPOINT É", write, "ROLLBACK TO é"}, 1, false},
	{"with code points", []string{`SAVEPOINT U&"d\0061t"`, write, "ROLLBACK TO dat"}, stand.Unread, false},
	{"a comment behind", []string{"SAVEPOINT a /* x */", write, "ROLLBACK TO SAVEPOINT a -- y"}, 1, false},
	{"a comment before", []string{"/* x */ SAVEPOINT a", write, "-- y\nROLLBACK TO SAVEPOINT a"}, 1, false},
	{"comments within", []string{"SAVEPOINT/* /* x */ ; */a", write, "ROLLBACK -- ; y\n TO/**/a"}, 1, false},
	{"a name set twice", []string{"SAVEPOINT a", write, "SAVEPOINT a", "ROLLBACK TO a"}, 2, false},
	{"a name set twice, the first one meant", []string{"SAVEPOINT a", write, "SAVEPOINT a", "RELEASE a", "ROLLBACK TO a"}, 1, false},
	{"an outer one released", []string{"SAVEPOINT a", "SAVEPOINT b", "SAVEPOINT a", write, "RELEASE b", "ROLLBACK TO a"}, 1, false},
	{"rolled back twice", []string{"SAVEPOINT a", "ROLLBACK TO a", write, "ROLLBACK TO a"}, 1, false},
	{"longer than the server keeps", []string{"SAVEPOINT " + strings.Repeat("x", 70), write, "ROLLBACK TO " + strings.Repeat("x", 80)}, 1, false},
	{"several in one text", []string{"SAVEPOINT a; SAVEPOINT b", write, "ROLLBACK TO b; ROLLBACK TO a; RELEASE a"}, 1, true},
	{"within one text", []string{write, "SAVEPOINT b; UPDATE accounts SET balance = 8; ROLLBACK TO b"}, 2, true},
	{"behind a string", []string{"SAVEPOINT a", write, "SELECT 'it''s' || E'\\'; x' || $$;$$; ROLLBACK TO a"}, 1, true},
	{"rolled back", []string{write, "ROLLBACK"}, 1, false},
	{"aborted", []string{write, "ABORT WORK"}, 1, false},
	{"rolled back with a chain", []string{write, "ROLLBACK AND CHAIN"}, 1, false},
	{"rolled back with a chain, and written", []string{write, "/* x */ rollback work and chain", write}, 2, false},
	{"committed with a chain, then rolled back", []string{write, "COMMIT AND CHAIN", write, "ROLLBACK"}, 2, false},
	{"ended, then begun", []string{write, "END; BEGIN", write, "ROLLBACK"}, 2, true},
	{"committed", []string{write, "COMMIT"}, 2, false},
	{"rolled back, then committed", []string{"SAVEPOINT a", write, "ROLLBACK TO a; COMMIT"}, 1, true},
}

// doors are the ways for a text to reach the server.
var doors = map[string]func(tx *gorm.DB, text string) error{
	"Exec": func(tx *gorm.DB, text string) error { return tx.Exec(text).Error },
	"Raw and Scan": func(tx *gorm.DB, text string) error {
		var n []string
		return tx.Raw(text).Scan(&n).Error
	},
	"Raw and Rows": func(tx *gorm.DB, text string) error {
		rows, err := tx.Raw(text).Rows()
		if err != nil {
			return err
		}
		for rows.Next() {
		}
		return errors.Join(rows.Err(), rows.Close())
	},
	"Raw and Row": func(tx *gorm.DB, text string) error {
		var n any
		if err := tx.Raw(text).Row().Scan(&n); !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		return nil
	},
	"the *sql.Tx": func(tx *gorm.DB, text string) error {
		pool := tx.Statement.ConnPool
		if prepared, ok := pool.(*gorm.PreparedStmtTX); ok {
			pool = prepared.Tx
		}
		_, err := pool.(*sql.Tx).ExecContext(context.Background(), text) //nolint:forcetypeassert // it is what this is about
		return err
	},
}

// commenting is a plugin that appends to raw SQL what a tracer would, and puts something before it.
type commenting struct{}

func (commenting) Name() string { return "commenting" }

func (commenting) Initialize(db *gorm.DB) error {
	comment := func(db *gorm.DB) {
		text := db.Statement.SQL.String()
		db.Statement.SQL.Reset()
		db.Statement.SQL.WriteString("/*app='x;y'*/ " + text + " /*traceparent='00-1'*/")
	}
	return errors.Join(
		db.Callback().Raw().Before("gorm:raw").Register("commenting", comment),
		db.Callback().Row().Before("gorm:row").Register("commenting", func(db *gorm.DB) {
			if db.Statement.SQL.Len() > 0 {
				comment(db)
			}
		}))
}

// V1, G30: whatever way a transaction or a savepoint is ended, the struct that was written in it either follows or counts as
// unread. The rival makes the version that was rolled back.
func TestG30_Spellings(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]struct {
		opts    []pgtest.Option
		plugins []gorm.Plugin
		session bool
	}{
		"extended":       {},
		"simple":         {opts: []pgtest.Option{pgtest.SimpleProtocol()}},
		"PrepareStmt":    {opts: []pgtest.Option{pgtest.PrepareStmt()}},
		"commented":      {plugins: []gorm.Plugin{commenting{}}},
		"commented late": {opts: []pgtest.Option{pgtest.SimpleProtocol()}, plugins: []gorm.Plugin{commenting{}}, session: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&stand.Account{}}, mode.opts...)
			for _, p := range mode.plugins {
				stand.Must(t, db.Use(p))
			}
			if mode.session {
				db = db.Session(&gorm.Session{PrepareStmt: true})
			}
			for door, send := range doors {
				for _, s := range spellings {
					if s.several && !takesSeveral(name, door) {
						continue // the server refuses it
					}
					t.Run(door+"/"+s.name, func(t *testing.T) { s.run(t, db, send) })
				}
			}
		})
	}
}

// takesSeveral reports whether several statements in one text get through.
func takesSeveral(mode, door string) bool {
	switch {
	case door == "the *sql.Tx", mode == "simple", mode == "commented late":
		return true
	case door == "Exec":
		return mode != "PrepareStmt"
	}
	return false
}

func (s spelling) run(t *testing.T, db *gorm.DB, send func(*gorm.DB, string) error) {
	t.Helper()
	var a stand.Account
	stand.Must(t, db.Create(&a).Error)
	err := db.Transaction(func(tx *gorm.DB) error {
		for _, text := range s.texts {
			if text == write {
				stand.Must(t, tx.Model(&a).Update("balance", gorm.Expr("balance + 1")).Error)
				continue
			}
			if err := send(tx, text); err != nil {
				return fmt.Errorf("%s: %w", text, err)
			}
		}
		return nil
	})
	last := s.texts[len(s.texts)-1]
	switch lost := last == "ROLLBACK" || last == "ABORT WORK"; {
	case !lost:
		stand.Must(t, err)
	case err == nil || !strings.Contains(err.Error(), "not committed"):
		t.Fatalf("what was written is rolled back: %v", err)
	}
	stand.Equal(t, "version", a.Version, s.want)
	mustNotOverwrite(t, db, &a)
}

// mustNotOverwrite lets a rival write the row, up to the struct's version and past it, and saves the struct.
func mustNotOverwrite(t *testing.T, db *gorm.DB, a *stand.Account) {
	t.Helper()
	row := stand.Row[stand.Account](t, db, a.ID)
	if row.Version == a.Version {
		stand.Must(t, db.Save(a).Error) // it is the row as it is
	}
	for range 3 {
		rival := stand.Row[stand.Account](t, db, a.ID)
		stand.Must(t, db.Model(&rival).Update("balance", 55).Error)
		mine := *a
		mine.Balance = 1
		if err := db.Save(&mine).Error; !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing) {
			t.Errorf("%+v was saved over %+v: %v", *a, rival, err)
			return
		}
	}
}
