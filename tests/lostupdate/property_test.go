package lostupdate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"pgregory.net/rapid"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// doc is the row that random programs write.
type doc struct {
	ID        int64
	A, B      int64
	Note      int64 `gormlock:"unversioned"`
	DeletedAt gorm.DeletedAt
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`

	Hook string `gorm:"-"` // the hook that fails
}

var errHook = errors.New("the hook fails")

func (d *doc) fails(hook string) error {
	if d.Hook == hook {
		return errHook
	}
	return nil
}

func (d *doc) BeforeSave(*gorm.DB) error { return d.fails("before") }
func (d *doc) AfterSave(*gorm.DB) error  { return d.fails("after") }

// plainDoc reads rows past the code under test.
type plainDoc struct {
	ID, A, B, Note, Version int64
	DeletedAt               sql.NullTime
}

func (plainDoc) TableName() string { return "docs" }

// Random programs of several writers, whose structs may be stale, compared with a model that knows every row and every
// struct. What fails is shrunk to the shortest program that does.
func TestRandomPrograms(t *testing.T) {
	t.Parallel()
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		dbs := map[string]*gorm.DB{
			"default":                open(t),
			"SkipDefaultTransaction": open(t, pgtest.SkipDefaultTransaction()),
			"PrepareStmt":            open(t, pgtest.PrepareStmt()),
		}
		must(t, dbs["default"].AutoMigrate(&doc{}))
		check(t, dbs, true)
	})
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		dsn := "file:" + filepath.Join(t.TempDir(), "docs.db") + "?_pragma=busy_timeout(5000)&_pragma=synchronous(0)"
		dbs := map[string]*gorm.DB{
			"default":                openSQLite(t, dsn, &gorm.Config{}),
			"SkipDefaultTransaction": openSQLite(t, dsn, &gorm.Config{SkipDefaultTransaction: true}),
		}
		must(t, dbs["default"].AutoMigrate(&doc{}))
		check(t, dbs, false)
	})
}

func openSQLite(t *testing.T, dsn string, config *gorm.Config) *gorm.DB {
	t.Helper()
	config.Logger = logger.Discard
	db, err := gorm.Open(sqlite.Open(dsn), config)
	must(t, err)
	pool, err := db.DB()
	must(t, err)
	closeAtEnd(t, pool)
	plugin := gormlock.New()
	closeAtEnd(t, plugin)
	must(t, db.Use(plugin))
	return db
}

func check(t *testing.T, dbs map[string]*gorm.DB, abortable bool) {
	t.Helper()
	names := make([]string, 0, len(dbs))
	for _, name := range []string{"default", "SkipDefaultTransaction", "PrepareStmt"} {
		if dbs[name] != nil {
			names = append(names, name)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.SampledFrom(names).Draw(r, "db")
		p := &program{T: r, db: dbs[name]}
		if err := p.db.Exec("DELETE FROM docs").Error; err != nil {
			r.Fatal(err)
		}
		p.create() // something to work on
		p.steps(rapid.IntRange(1, 25).Draw(r, "steps"))
	})
}

// program is one random program, and what must hold at every point of it.
type program struct {
	*rapid.T
	db *gorm.DB

	rows    map[int64]row
	structs []*writer
	wrote   int // how often a row was written: tells one state of a row from every other

	inside    int // how deep in transactions
	doomed    bool
	gormlocks int // how many of them are gormlock.Transaction
	journal   []change
	doubts    map[version]bool // at which rows were read so far in the transaction: see doubted
}

// row is a row as it must be.
type row struct {
	a, b, note, version int64
	deleted             bool
	state               int // which write made it so
}

// writer is a struct that somebody holds, and what must be in it.
type writer struct {
	ptr   *doc
	want  fields
	state int // the state of the row that its version stands for
}

// settle accepts what columns an unread struct holds: what was read into it may be just what a statement that is taken back left in
// another struct of the row, and then it is taken back in both.
func (w *writer) settle() {
	if now := fieldsOf(w.ptr); w.want.version == stand.Unread && now.version == stand.Unread {
		w.want.a, w.want.b, w.want.note = now.a, now.b, now.note
	}
}

// fields are the columns of a struct.
type fields struct{ id, a, b, note, version int64 }

func fieldsOf(d *doc) fields { return fields{d.ID, d.A, d.B, d.Note, d.Version} }

// change is what a statement did to a struct, or that it wrote rows without one, or read a row after the transaction had
// written.
type change struct {
	w             *writer // nil: rows were written without a struct
	before, after fields
	state         int
	read          bool
	guessed       bool // it gave a stale struct a version that its row has not
}

// bulkily notes a statement that has written rows by a condition.
func (p *program) bulkily() { p.journal = append(p.journal, change{}) }

// reads notes that a struct was read after something was written in the transaction: after a rollback it counts as not read.
func (p *program) reads(w *writer) {
	if j := journal.Of(p.db.Statement); p.inside > 0 && j != nil && j.Written() > 0 {
		p.journal = append(p.journal, change{w: w, after: w.want, read: true})
	}
}

func (p *program) steps(n int) {
	for range n {
		if p.doomed && p.inside > 0 {
			return
		}
		p.step()
		p.compare()
	}
}

func (p *program) step() {
	names := stepNames
	if p.inside < 3 {
		names = append(slices.Clip(names), "transaction", "transaction", "transaction")
	}
	steps[rapid.SampledFrom(names).Draw(p.T, "step")](p)
}

// compare compares every row and every struct with the model.
func (p *program) compare() {
	p.Helper()
	if p.doomed {
		return // the server's rows are on their way back
	}
	var all []plainDoc
	if err := p.db.Find(&all).Error; err != nil {
		p.Fatal(err)
	}
	if len(all) != len(p.rows) {
		p.Fatalf("%d rows, want %d: %v, %v", len(all), len(p.rows), all, p.rows)
	}
	for _, got := range all {
		want, ok := p.rows[got.ID]
		want.state = 0
		if is := (row{got.A, got.B, got.Note, got.Version, got.DeletedAt.Valid, 0}); !ok || is != want {
			p.Fatalf("row %d is %+v, want %+v", got.ID, is, want)
		}
	}
	for i, w := range p.structs {
		if got := fieldsOf(w.ptr); got != w.want {
			p.Fatalf("struct %d is %+v, want %+v", i, got, w.want)
		}
		if at, ok := p.rows[w.want.id]; ok && w.want.version == at.version && w.state != at.state {
			p.Fatalf("struct %d %+v holds the version of a row that it was not read from: a write of it would be silent", i, w.want)
		}
	}
}

// put writes a row.
func (p *program) put(id int64, r row) int {
	p.wrote++
	r.state = p.wrote
	rows := make(map[int64]row, len(p.rows)+1)
	for k, v := range p.rows {
		rows[k] = v
	}
	rows[id] = r
	p.rows = rows
	return r.state
}

func (p *program) drop(id int64) {
	rows := make(map[int64]row, len(p.rows))
	for k, v := range p.rows {
		if k != id {
			rows[k] = v
		}
	}
	p.rows = rows
}

// follows makes the struct what a statement that succeeded makes of it.
func (p *program) follows(w *writer, after fields, state int) {
	p.journal = append(p.journal, change{w: w, before: w.want, after: after, state: w.state})
	w.want, w.state = after, state
}

// undo takes back what statements did to structs since the journal had n entries: of each column that it changed and
// nobody changed since.
func (p *program) undo(n int) {
	read, doubted := []*writer{}, p.doubted(n)
	for i := len(p.journal) - 1; i >= n; i-- {
		c := p.journal[i]
		if c.w == nil || c.w.want.id != c.after.id {
			continue
		}
		if c.read {
			c.w.want.version, c.w.state = stand.Unread, 0
			read = append(read, c.w)
			continue
		}
		back := func(now *int64, before, after int64) {
			if before != after && *now == after {
				*now = before
			}
		}
		back(&c.w.want.id, c.before.id, c.after.id)
		back(&c.w.want.a, c.before.a, c.after.a)
		back(&c.w.want.b, c.before.b, c.after.b)
		back(&c.w.want.note, c.before.note, c.after.note)
		back(&c.w.want.version, c.before.version, c.after.version)
		c.w.state = c.state
		if c.guessed {
			p.twins(c)
		}
	}
	for _, w := range read {
		w.settle()
	}
	for _, w := range p.structs {
		if doubted[version{w.want.id, w.want.version}] && w.ptr.Version == stand.Unread {
			w.want.version, w.state = stand.Unread, 0
		}
	}
	p.journal = p.journal[:n]
}

// twins accepts that a struct which is in all columns what a statement left in another one is taken back with it: it may be a copy.
func (p *program) twins(c change) {
	for _, w := range p.structs {
		if w != c.w && w.want == c.after && fieldsOf(w.ptr) == c.before {
			w.want, w.state = c.before, c.state
		}
	}
}

// version is a state of a row, as structs tell it.
type version struct{ id, version int64 }

// doubted are the versions at which rows were read since the journal had n entries, behind a write, which may have made them. Another struct that
// has such a version may be a copy of what was read, and may count as not read then, also after the rollback of a transaction around it.
func (p *program) doubted(n int) map[version]bool {
	for _, c := range p.journal[n:] {
		if c.read {
			p.doubts[version{c.after.id, c.after.version}] = true
		}
	}
	return p.doubts
}

// transaction runs steps in a transaction or savepoint of some kind, which ends in some way.
func (p *program) transaction() {
	kind := rapid.SampledFrom([]string{"db.Transaction", "gormlock.Transaction", "Begin", "context"}).Draw(p.T, "kind")
	if p.inside > 0 && (kind == "Begin" || kind == "context") {
		kind = "SavePoint"
	}
	end := rapid.SampledFrom([]string{"commit", "error", "panic"}).Draw(p.T, "end")
	if p.inside == 0 {
		p.journal, p.doubts = nil, map[version]bool{}
	}
	outer, rows, structs, journal, doomed := p.db, p.rows, len(p.structs), len(p.journal), p.doomed
	p.inside++
	if kind == "gormlock.Transaction" {
		p.gormlocks++
	}
	run := func(tx *gorm.DB) error {
		p.db = tx
		p.steps(rapid.IntRange(1, 6).Draw(p.T, "inner steps"))
		switch end {
		case "error":
			return errHook
		case "panic":
			panic(errHook)
		}
		return nil
	}
	err := p.perform(kind, run)
	p.db = outer
	p.inside--
	if kind == "gormlock.Transaction" {
		p.gormlocks--
	}
	committed := end == "commit" && kind != "context" && (!p.doomed || p.inside > 0 && kind == "SavePoint")
	switch {
	case committed && err != nil:
		p.Fatalf("%s: %v", kind, err)
	case !committed && err == nil && (!p.doomed || p.inside == 0):
		p.Fatalf("%s: committed what %s", kind, end)
	case end == "commit" && p.doomed && err != nil && !isRefused(err) && kind != "context":
		p.Fatalf("%s: doomed, but %v", kind, err)
	}
	if err != nil {
		p.rows, p.structs, p.doomed = rows, p.structs[:structs], doomed // copies made inside are forgotten
		p.undo(journal)
	}
}

func (p *program) perform(kind string, run func(*gorm.DB) error) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			if caught != any(errHook) {
				panic(caught)
			}
			err = errHook
		}
	}()
	switch kind {
	case "db.Transaction":
		return p.db.Transaction(run)
	case "gormlock.Transaction":
		return gormlock.Transaction(p.db, run)
	case "SavePoint":
		name := fmt.Sprint("by_hand_", p.inside)
		tx := p.db
		if err := tx.SavePoint(name).Error; err != nil {
			p.Fatal(err)
		}
		if err = p.caught(run, tx); err != nil {
			if err := tx.RollbackTo(name).Error; err != nil {
				p.Fatal(err)
			}
		}
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tx := p.db.WithContext(ctx).Begin()
	if tx.Error != nil {
		p.Fatal(tx.Error)
	}
	err = p.caught(run, tx)
	if kind == "context" {
		cancel()
	}
	if err != nil {
		tx.Rollback()
		return err
	}
	return tx.Commit().Error
}

func (p *program) caught(run func(*gorm.DB) error, tx *gorm.DB) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			if caught != any(errHook) {
				panic(caught)
			}
			err = errHook
		}
	}()
	return run(tx)
}
