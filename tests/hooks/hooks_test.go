package hooks_test

import (
	"database/sql"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"

	"github.com/gormlock/gormlock/hooks"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// plugin installs handlers that write down where they were called.
type plugin struct {
	name string
	note func(place string, db *gorm.DB)
}

func (p plugin) Name() string { return p.name }

func (p plugin) Initialize(db *gorm.DB) error { return hooks.Install(db, p.handlers()) }

func (p plugin) handlers() hooks.Handlers {
	at := func(place string) func(*gorm.DB) {
		return func(db *gorm.DB) {
			if p.note != nil {
				p.note(place, db)
			}
		}
	}
	write := func() hooks.Write {
		return hooks.Write{BeforeBegin: at("before begin"), InTransaction: at("in transaction"), BeforeAssociations: at("before associations"), BeforeWrite: at("before write"), AfterWrite: at("after write"), AfterEnd: at("after end")}
	}
	read := func() hooks.Read {
		return hooks.Read{BeforeRead: at("before read"), AfterRead: at("after read")}
	}
	return hooks.Handlers{Create: write(), Update: write(), Delete: write(), Query: read(), Row: read(), Raw: read()}
}

var ops = []string{"create", "update", "delete", "query", "row", "raw"}

// order is what GORM runs for a statement, by name, as it compiled it.
func order(t *testing.T, db *gorm.DB, op string) (names []string) {
	t.Helper()
	callbacks := reflect.ValueOf(db.Callback()).Elem()
	processor := open(callbacks.FieldByName("processors")).MapIndex(reflect.ValueOf(op)).Elem()
	known := map[unsafe.Pointer]string{}
	registered := open(processor.FieldByName("callbacks"))
	for i := range registered.Len() {
		callback := registered.Index(i).Elem()
		known[identity(open(callback.FieldByName("handler")).Interface().(func(*gorm.DB)))] = callback.FieldByName("name").String()
	}
	for _, fn := range open(processor.FieldByName("fns")).Interface().([]func(*gorm.DB)) {
		name, ok := known[identity(fn)]
		if !ok {
			t.Fatalf("%s runs a function that nobody registered", op)
		}
		names = append(names, name)
	}
	return names
}

// open makes an unexported field readable.
func open(field reflect.Value) reflect.Value {
	return reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
}

func identity(fn func(*gorm.DB)) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&fn)) }

var full = map[string][]string{
	"create": {
		"gormlock:before_begin", "gorm:begin_transaction", "gormlock:in_transaction",
		"gorm:before_create", "gormlock:before_associations", "gorm:save_before_associations", "gormlock:before_write",
		"gorm:create", "gormlock:after_write", "gorm:save_after_associations", "gorm:after_create",
		"gorm:commit_or_rollback_transaction", "gormlock:after_end",
	},
	"update": {
		"gormlock:before_begin", "gorm:begin_transaction", "gormlock:in_transaction",
		"gorm:setup_reflect_value", "gorm:before_update", "gormlock:before_associations", "gorm:save_before_associations", "gormlock:before_write",
		"gorm:update", "gormlock:after_write", "gorm:save_after_associations", "gorm:after_update",
		"gorm:commit_or_rollback_transaction", "gormlock:after_end",
	},
	"delete": {
		"gormlock:before_begin", "gorm:begin_transaction", "gormlock:in_transaction",
		"gorm:before_delete", "gorm:delete_before_associations", "gormlock:before_write",
		"gorm:delete", "gormlock:after_write", "gorm:after_delete",
		"gorm:commit_or_rollback_transaction", "gormlock:after_end",
	},
	"query": {"gormlock:before_read", "gorm:query", "gormlock:after_read", "gorm:preload", "gorm:after_query"},
	"row":   {"gormlock:before_read", "gorm:row", "gormlock:after_read"},
	"raw":   {"gormlock:before_read", "gorm:raw", "gormlock:after_read"},
}

// bystander is a plugin like many: it anchors on one side, on names of GORM's.
type bystander struct{}

func (bystander) Name() string { return "bystander" }

func (bystander) Initialize(db *gorm.DB) error {
	nothing := func(place string) func(*gorm.DB) { return func(*gorm.DB) { _ = place } }
	c := db.Callback()
	return errors.Join(
		c.Create().Before("gorm:create").Register("bystander:before", nothing("create")),
		c.Create().After("gorm:create").Register("bystander:after", nothing("created")),
		c.Update().Before("gorm:update").Register("bystander:before", nothing("update")),
		c.Update().After("gorm:update").Register("bystander:after", nothing("updated")),
		c.Delete().Before("gorm:delete").Register("bystander:before", nothing("delete")),
		c.Delete().After("gorm:delete").Register("bystander:after", nothing("deleted")),
		c.Query().Before("gorm:query").Register("bystander:before", nothing("query")),
		c.Row().Before("gorm:row").Register("bystander:before", nothing("row")),
		c.Raw().Before("*").Register("bystander:before", nothing("raw")),
		c.Create().After("*").Register("bystander:last", nothing("last")),
	)
}

// TestG1_Order: every place is where the table says, whatever is installed beside and in whatever order.
func TestG1_Order(t *testing.T) {
	t.Parallel()
	resolver := func() gorm.Plugin { return dbresolver.Register(dbresolver.Config{}) }
	ours := func() gorm.Plugin { return plugin{name: "gormlock"} }
	for name, c := range map[string]struct {
		opts    []pgtest.Option
		plugins []gorm.Plugin
		without []string
		extra   map[string]string // by name: what it must precede
	}{
		"alone":              {plugins: []gorm.Plugin{ours()}},
		"prepared":           {opts: []pgtest.Option{pgtest.PrepareStmt()}, plugins: []gorm.Plugin{ours()}},
		"after dbresolver":   {plugins: []gorm.Plugin{resolver(), ours()}},
		"before dbresolver":  {plugins: []gorm.Plugin{ours(), resolver()}},
		"after a bystander":  {plugins: []gorm.Plugin{bystander{}, ours()}},
		"before a bystander": {plugins: []gorm.Plugin{ours(), bystander{}}},
		"among others":       {plugins: []gorm.Plugin{bystander{}, ours(), resolver()}},
		// G2: without default transactions GORM has no begin and no commit to anchor on.
		"without default transactions": {
			opts: []pgtest.Option{pgtest.SkipDefaultTransaction()}, plugins: []gorm.Plugin{ours()},
			without: []string{"gorm:begin_transaction", "gorm:commit_or_rollback_transaction"},
		},
		"without default transactions, after dbresolver": {
			opts: []pgtest.Option{pgtest.SkipDefaultTransaction()}, plugins: []gorm.Plugin{resolver(), ours()},
			without: []string{"gorm:begin_transaction", "gorm:commit_or_rollback_transaction"},
		},
		"without default transactions, before dbresolver": {
			opts: []pgtest.Option{pgtest.SkipDefaultTransaction()}, plugins: []gorm.Plugin{ours(), resolver()},
			without: []string{"gorm:begin_transaction", "gorm:commit_or_rollback_transaction"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.Open(t, c.opts...)
			resolved := false
			for _, p := range c.plugins {
				if err := db.Use(p); err != nil {
					t.Fatal(err)
				}
				resolved = resolved || p.Name() == "gorm:db_resolver"
			}
			for _, op := range ops {
				want := slices.DeleteFunc(slices.Clone(full[op]), func(name string) bool { return slices.Contains(c.without, name) })
				got := order(t, db, op)
				if resolved && got[0] != "gorm:db_resolver" && got[0] != "bystander:before" {
					t.Errorf("%s: the pool is chosen too late: %q", op, got)
				}
				own := slices.DeleteFunc(got, func(name string) bool { return !strings.HasPrefix(name, "gormlock:") && !slices.Contains(want, name) })
				if !slices.Equal(own, want) {
					t.Errorf("%s:\n got %q\nwant %q", op, own, want)
				}
			}
		})
	}
}

// TestG1_Control: a callback that only stands behind another one runs after the commit. That is why points stand before one.
func TestG1_Control(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t)
	if err := db.Callback().Update().After("gorm:update").Register("late", func(*gorm.DB) {}); err != nil {
		t.Fatal(err)
	}
	names := order(t, db, "update")
	if slices.Index(names, "late") < slices.Index(names, "gorm:commit_or_rollback_transaction") {
		t.Errorf("GORM has learnt to place it: %q", names)
	}
}

// TestG25_InstallTwice: dbresolver initialises plugins again, and sessions share their callbacks.
func TestG25_InstallTwice(t *testing.T) {
	t.Parallel()
	p := plugin{name: "gormlock"}
	db := pgtest.Open(t, pgtest.Plugin(p))
	before := map[string][]string{}
	for _, op := range ops {
		before[op] = order(t, db, op)
	}
	for _, again := range []*gorm.DB{db, db.Session(&gorm.Session{NewDB: true}), db.Begin()} {
		if err := p.Initialize(again); err != nil {
			t.Fatal(err)
		}
		if _, ok := again.Statement.ConnPool.(gorm.TxCommitter); ok {
			again.Rollback()
		}
	}
	for _, op := range ops {
		if got := order(t, db, op); !slices.Equal(got, before[op]) {
			t.Errorf("%s:\n got %q\nwant %q", op, got, before[op])
		}
	}
}

// TestInstallNothing: a place without a handler has no callback.
func TestInstallNothing(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t)
	if err := hooks.Install(db, hooks.Handlers{}); err != nil {
		t.Fatal(err)
	}
	for _, op := range ops {
		for _, name := range order(t, db, op) {
			if strings.HasPrefix(name, "gormlock:") {
				t.Errorf("%s has %s", op, name)
			}
		}
	}
}

// TestPointsAreDistinct: no two places of one statement share a name, or the second would be taken for installed.
func TestPointsAreDistinct(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range hooks.Points {
		if seen[p.Op+p.Name] {
			t.Errorf("%s %s is there twice", p.Op, p.Name)
		}
		seen[p.Op+p.Name] = true
	}
}

type maker struct {
	ID   int64
	Name string
}

type part struct {
	ID      int64
	ThingID int64
}

type thing struct {
	ID      int64
	Name    string
	MakerID *int64
	Maker   *maker
	Parts   []part
}

// TestPlaces: what each place promises is so when its handler runs.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts    []pgtest.Option
		session *gorm.Session
		begins  bool
	}{
		"implicit transaction":          {begins: true, session: &gorm.Session{}},
		"session without a transaction": {session: &gorm.Session{SkipDefaultTransaction: true}},
		"config without a transaction":  {opts: []pgtest.Option{pgtest.SkipDefaultTransaction()}, session: &gorm.Session{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var places []string
			p := plugin{name: "gormlock", note: func(place string, db *gorm.DB) {
				if db.Statement.Table != "things" {
					return
				}
				places = append(places, place)
				_, open := db.Statement.ConnPool.(*sql.Tx)
				wantOpen := c.begins && place != "before begin" && place != "after end" && !strings.HasSuffix(place, "read")
				if open != wantOpen {
					t.Errorf("%s: in a transaction: %v", place, open)
				}
				if saved := db.RowsAffected > 0; place == "after write" != saved && place != "after end" && !strings.HasSuffix(place, "read") {
					t.Errorf("%s: %d rows", place, db.RowsAffected)
				}
				if m, ok := db.Statement.Dest.(*thing); ok && m.Maker != nil && (m.Maker.ID != 0) != (place != "before begin" && place != "in transaction" && place != "before associations") {
					t.Errorf("%s: the maker has id %d", place, m.Maker.ID)
				}
			}}
			db := pgtest.Open(t, append(c.opts, pgtest.Schema())...)
			if err := db.AutoMigrate(&maker{}, &thing{}, &part{}); err != nil {
				t.Fatal(err)
			}
			if err := db.Use(p); err != nil {
				t.Fatal(err)
			}
			db = db.Session(c.session)
			written := []string{"before begin", "in transaction", "before associations", "before write", "after write", "after end"}
			deleted := []string{"before begin", "in transaction", "before write", "after write", "after end"}
			read := []string{"before read", "after read"}
			check := func(what string, err error, want []string) {
				t.Helper()
				if err != nil || !slices.Equal(places, want) {
					t.Errorf("%s: %v, places %q, want %q", what, err, places, want)
				}
				places = nil
			}
			m := &thing{Name: "t", Maker: &maker{Name: "m"}, Parts: []part{{}, {}}}
			check("create", db.Create(m).Error, written)
			check("update", db.Model(&thing{}).Where("id = ?", m.ID).Update("name", "u").Error, written)
			check("save", db.Omit("Parts", "Maker").Save(&thing{ID: m.ID, Name: "s"}).Error, written)
			check("query", db.First(&thing{}, m.ID).Error, read)
			var s string
			check("row", db.Model(&thing{}).Select("name").Row().Scan(&s), read)
			check("raw", db.Table("things").Exec("update things set name = 'r'").Error, read)
			check("delete", db.Select("Parts").Delete(&thing{ID: m.ID}).Error, deleted)
		})
	}
}
