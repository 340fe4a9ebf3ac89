package transactions_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// stopper stops in the hook that its Stop names.
type stopper struct {
	ID      int64
	Note    string
	Stop    string `gorm:"-"`
	Parts   []stopperPart
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// stopperPart belongs to a stopper, and stops as it does.
type stopperPart struct {
	ID        int64
	StopperID int64
	Note      string
	Stop      string `gorm:"-"`
	Version   int64  `gorm:"not null;default:1" gormlock:"version"`
}

func stopIf(stop, hook string) error {
	switch stop {
	case hook:
		panic(hook)
	case hook + " by Goexit":
		runtime.Goexit()
	}
	return nil
}

func (h *stopper) BeforeSave(*gorm.DB) error   { return stopIf(h.Stop, "BeforeSave") }
func (h *stopper) AfterSave(*gorm.DB) error    { return stopIf(h.Stop, "AfterSave") }
func (h *stopper) BeforeDelete(*gorm.DB) error { return stopIf(h.Stop, "BeforeDelete") }
func (h *stopper) AfterDelete(*gorm.DB) error  { return stopIf(h.Stop, "AfterDelete") }

func (p *stopperPart) BeforeSave(*gorm.DB) error { return stopIf(p.Stop, "BeforeSave of a part") }
func (p *stopperPart) AfterSave(*gorm.DB) error  { return stopIf(p.Stop, "AfterSave of a part") }

// TestPanicInAHook: nobody commits what a statement wrote whose hook panics. Its transaction is rolled back at once, so that no
// connection stays in use, and its structs are what they were.
func TestPanicInAHook(t *testing.T) {
	t.Parallel()
	writes := map[string]func(db *gorm.DB, h *stopper) *gorm.DB{
		"save":   func(db *gorm.DB, h *stopper) *gorm.DB { return db.Save(h) },
		"update": func(db *gorm.DB, h *stopper) *gorm.DB { return db.Model(h).Update("note", "mine") },
		"batch": func(db *gorm.DB, h *stopper) *gorm.DB {
			return db.Save([]*stopper{h})
		},
		"full": func(db *gorm.DB, h *stopper) *gorm.DB {
			return db.Session(&gorm.Session{FullSaveAssociations: true}).Save(h)
		},
		"delete": func(db *gorm.DB, h *stopper) *gorm.DB { return db.Delete(h) },
	}
	for _, skip := range []bool{false, true} {
		plugin := gormlock.New()
		t.Cleanup(func() { _ = plugin.Close() })
		said := &said{Interface: logger.Discard}
		db := pgtest.Open(t, pgtest.Schema(), pgtest.Config(func(c *gorm.Config) { c.SkipDefaultTransaction, c.Logger = skip, said }), pgtest.Plugin(plugin))
		if len(said.infos) > 0 {
			t.Errorf("the plugin is installed, and the logger hears %q", said.infos)
		}
		db.Logger = logger.Discard
		stand.Must(t, db.AutoMigrate(&stopper{}, &stopperPart{}))
		pool, err := db.DB()
		stand.Must(t, err)
		for name, write := range writes {
			for _, stop := range []string{"BeforeSave", "AfterSave", "AfterSave by Goexit", "BeforeSave of a part", "AfterSave of a part", "BeforeDelete", "AfterDelete"} {
				stand.MustDo(t, db.Exec("TRUNCATE stoppers, stopper_parts"))
				h := stopper{ID: 1, Note: "n", Parts: []stopperPart{{ID: 1, Note: "n"}}}
				stand.MustDo(t, db.Create(&h))
				h.Note, h.Parts[0].Note = "mine", "mine"
				if strings.HasSuffix(stop, "part") {
					h.Parts[0].Stop = stop
				} else {
					h.Stop = stop
				}
				ended := make(chan bool)
				stopped := true
				go func() {
					defer func() {
						_ = recover()
						ended <- true
					}()
					_ = write(db, &h)
					stopped = false
				}()
				<-ended
				h.Stop, h.Parts[0].Stop = "", ""
				if !stopped {
					continue // this statement does not call that hook
				}
				if n := pool.Stats().InUse; n != 0 {
					t.Fatalf("skip %v, %s, %s: %d connections stay in use", skip, name, stop, n)
				}
				if h.Version != 1 || h.Parts[0].Version != 1 {
					t.Errorf("skip %v, %s, %s: the struct is %+v", skip, name, stop, h)
				}
				stand.MustDo(t, db.Exec("UPDATE stoppers SET note = 'rival', version = version + 1"))
				if err := db.Save(&h).Error; !errors.Is(err, gormlock.ErrStale) {
					t.Errorf("skip %v, %s, %s: Save after a rival: %v", skip, name, stop, err)
				}
			}
		}
	}
}

// TestPanicInATransaction: in a transaction of the caller's, its end decides.
func TestPanicInATransaction(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stopper{}, &stopperPart{}})
	h := stopper{ID: 1, Note: "n"}
	stand.MustDo(t, db.Create(&h))
	for _, undo := range []error{errUndo, nil} {
		version := h.Version
		if err := db.Transaction(func(tx *gorm.DB) error {
			func() {
				defer func() { _ = recover() }()
				h.Stop = "AfterSave"
				tx.Save(&h)
			}()
			h.Stop = ""
			return undo
		}); !errors.Is(err, undo) {
			t.Fatal(err)
		}
		if undo == nil {
			version++
		}
		stand.Equal(t, "version", h.Version, version)
		stand.Equal(t, "row", stand.Row[stopper](t, db, 1).Version, version)
	}
}

// said is a logger that keeps what it is told.
type said struct {
	logger.Interface
	infos []string
}

func (s *said) Info(_ context.Context, text string, _ ...any)  { s.infos = append(s.infos, text) }
func (s *said) Warn(_ context.Context, text string, _ ...any)  { s.infos = append(s.infos, text) }
func (s *said) Error(_ context.Context, text string, _ ...any) { s.infos = append(s.infos, text) }
