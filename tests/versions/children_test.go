package versions_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// basket has children with a version of each kind.
type basket struct {
	ID      int64
	Name    string
	Version int64 `gormlock:"version"`
	Apples  []apple
	Pears   []*pear
	Plum    *plum
	Quince  *quince
	Labels  []label `gorm:"polymorphic:Owner"`
	Hints   []hint  `gorm:"many2many:basket_hints"`
}

// hamper is the other owner of labels.
type hamper struct {
	ID     int64
	Labels []label `gorm:"polymorphic:Owner"`
}

type (
	apple struct {
		ID, BasketID int64
		Size         int
		Version      int16 `gormlock:"version"`
	}
	pear struct {
		ID          string `gorm:"type:uuid;default:gen_random_uuid()"`
		BasketID    *int64
		Size        int
		LockVersion int64 `gormlock:"version,rails"`
	}
	plum struct {
		ID, BasketID int64
		Size         int
		Version      time.Time `gorm:"type:timestamptz(3)" gormlock:"version"`
	}
	quince struct {
		ID, BasketID int64
		Size         int
		Version      sql.NullInt64 `gormlock:"version,hibernate"`
	}
	label struct {
		ID, OwnerID int64
		OwnerType   string
		Text        string
		Version     int64 `gormlock:"version"`
	}
	hint struct {
		ID      int64
		Text    string
		Version int64 `gormlock:"version"`
	}
)

var fruit = []any{&basket{}, &hamper{}, &apple{}, &pear{}, &plum{}, &quince{}, &label{}, &hint{}}

func filled(t *testing.T, db *gorm.DB) *basket {
	t.Helper()
	b := stand.Made(t, db, basket{Apples: []apple{{}, {}}, Pears: []*pear{{}}, Plum: &plum{}, Quince: &quince{}, Hints: []hint{{}}})
	return read(t, db, b.ID)
}

func read(t *testing.T, db *gorm.DB, id int64) *basket {
	t.Helper()
	b := basket{}
	stand.Must(t, db.Preload(clause.Associations).First(&b, id).Error)
	return &b
}

// G33: a child that a rival deleted is not inserted again by a write of its parent, whatever counts its version. Those that
// are there stay as they are.
func TestG33_ChildrenThatARivalDeleted(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, fruit)
	// The columns may hold less than the models say, or other numbers.
	stand.MustDo(t, db.Exec("ALTER TABLE pears ALTER lock_version TYPE smallint; ALTER TABLE quinces ALTER version TYPE numeric(19,0)"))
	writes := map[string]func(tx *gorm.DB, b *basket) error{
		"Save":   func(tx *gorm.DB, b *basket) error { b.Name = "x"; return tx.Save(b).Error },
		"Update": func(tx *gorm.DB, b *basket) error { return tx.Model(b).Update("name", "x").Error },
		"slice":  func(tx *gorm.DB, b *basket) error { b.Name = "x"; return tx.Save([]*basket{b}).Error },
	}
	for name, write := range writes {
		fresh := filled(t, db)
		stand.Must(t, write(db, fresh))
		now := read(t, db, fresh.ID)
		stand.Equal(t, name+": apples", fresh.Apples[0], now.Apples[0])
		stand.Equal(t, name+": pear", fresh.Pears[0].LockVersion, now.Pears[0].LockVersion)
		stand.Equal(t, name+": plum", fresh.Plum.Version.Equal(now.Plum.Version), true)
		stand.Equal(t, name+": quince", *fresh.Quince, *now.Quince)
		stand.Must(t, write(db, fresh))
		for _, table := range []string{"apples", "pears", "plums", "quinces"} {
			b := filled(t, db)
			stand.MustDo(t, db.Exec("DELETE FROM "+table+" WHERE basket_id = ?", b.ID))
			stale := stand.MustBeStale(t, write(db, b))
			if stale != nil && (stale.Table != table || !stale.Deleted) {
				t.Errorf("%s, %s: %v", name, table, stale)
			}
			var n int64
			stand.Must(t, db.Table(table).Where("basket_id = ?", b.ID).Count(&n).Error)
			stand.Equal(t, name+", "+table+": rows", n, 0)
		}
	}
}

// G33: a child that a rival changed, or moved, is still compared where the parent's write changes its foreign key.
func TestG33_ChildrenWhoseKeyIsSetByHand(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, fruit)
	b, other := filled(t, db), filled(t, db).ID
	stand.MustDo(t, db.Exec("UPDATE apples SET basket_id = ? WHERE id = ?", other, b.Apples[0].ID))
	stand.Must(t, db.Save(b).Error) // at its version: it comes back
	stand.Equal(t, "moved", stand.Row[apple](t, db, b.Apples[0].ID), apple{ID: b.Apples[0].ID, BasketID: b.ID, Version: 2})
	stand.MustDo(t, db.Exec("UPDATE apples SET basket_id = ?, version = version + 1 WHERE id = ?", other, b.Apples[1].ID))
	stand.MustStale(t, db.Save(b).Error)
	stand.MustDo(t, db.Exec("UPDATE plums SET basket_id = ?, version = version + interval '1 second' WHERE basket_id = ?", other, b.ID))
	stand.MustStale(t, db.Omit("Apples").Save(b).Error)
}

// A new child whose key the program makes is stored with its parent, where 0 is a first version too.
func TestNewChildrenWithKeys(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, fruit)
	b := filled(t, db)
	b.Pears = append(b.Pears, &pear{ID: "6ba7b810-9dad-41d1-80b4-00c04fd430c8", Size: 3})
	stand.Must(t, db.Save(b).Error)
	stand.Equal(t, "pears", len(read(t, db, b.ID).Pears), 2)
}

// V28: a polymorphic child that comes from a parent of another kind with the same id moves.
func TestV28_PolymorphicChildOfTheSameID(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, fruit)
	from, to := hamper{ID: 77, Labels: []label{{Text: "a"}}}, basket{ID: 77}
	stand.Must(t, db.Create(&from).Error)
	stand.Must(t, db.Create(&to).Error)
	stale := from.Labels[0]
	to.Labels = []label{from.Labels[0]}
	stand.Must(t, db.Save(&to).Error)
	moved := stand.Row[label](t, db, stale.ID)
	stand.Equal(t, "moved", moved, label{ID: stale.ID, OwnerID: 77, OwnerType: "baskets", Text: "a", Version: 2})
	stand.Equal(t, "in memory", to.Labels[0], moved)
	stand.MustStale(t, db.Save(&stale).Error)
}

// V1: foreign keys that GORM gave to children are taken back with the rest, through pointers too.
func TestV1_ForeignKeysOfChildren(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, fruit)
	b := filled(t, db)
	own := b.Apples[0]
	pears := *b.Pears[0]
	stand.Equal(t, "pear's basket", *pears.BasketID, b.ID)
	for name, write := range map[string]func(tx *gorm.DB) error{
		"rolled back": func(tx *gorm.DB) error {
			return errors.Join(tx.Create(&basket{Apples: b.Apples[:1], Pears: b.Pears}).Error, errors.New("undo"))
		},
		"refused": func(tx *gorm.DB) error {
			gone := apple{ID: 123456, Version: 4, BasketID: 9}
			apples := []apple{own, gone}
			err := tx.Create(&basket{Apples: apples, Pears: b.Pears}).Error
			stand.Equal(t, "apple", apples[0].BasketID, b.ID)
			return err
		},
	} {
		if err := db.Transaction(write); err == nil {
			t.Fatal(name)
		}
		stand.Equal(t, name+": apple", b.Apples[0], own)
		stand.Equal(t, name+": pear", *b.Pears[0].BasketID, b.ID)
		b.Apples[0].Size++
		stand.Must(t, db.Save(&b.Apples[0]).Error)
		own = b.Apples[0]
		stand.Must(t, db.Save(b.Pears[0]).Error)
	}
}

// G29: what gorm.G sets of a many2many association would reach the rows of all owners, so it is refused. Clauses of gormlock are heeded or an error.
func TestG29_AssociationsThatAreSet(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, fruit)
	b := filled(t, db)
	held := b.Hints[0]
	set := []clause.Assignment{{Column: clause.Column{Name: "text"}, Value: "set"}}
	op := func(kind clause.AssociationOpType) clause.Association {
		return clause.Association{Association: "Hints", Type: kind, Set: set}
	}
	update := func(tx *gorm.DB, kind clause.AssociationOpType, clauses ...clause.Expression) error {
		_, err := gorm.G[basket](tx, clauses...).Where("id = ?", b.ID).Set(op(kind)).Update(t.Context())
		return err
	}
	if err := update(db, clause.OpUpdate); err == nil || !strings.Contains(err.Error(), "leaves its Where out") {
		t.Error(err)
	}
	stand.Equal(t, "row", stand.Row[hint](t, db, held.ID), held)

	key := lockkey.Of("set", b.ID)
	for _, kind := range []clause.AssociationOpType{clause.OpCreate, clause.OpUpdate, clause.OpUnlink, clause.OpDelete} {
		for name, c := range map[string]clause.Expression{"expect": gormlock.ExpectVersion(77), "match": stand.IfMatch("*"), "row lock": gormlock.RowLock(gormlock.ForUpdate)} {
			before := *read(t, db, b.ID)
			if err := update(db, kind, c); err == nil {
				t.Errorf("%v, %s: no error", kind, name)
			}
			stand.Equal(t, name, len(read(t, db, b.ID).Hints), len(before.Hints))
		}
		if err := update(db, kind, gormlock.XactLock(key)); !errors.Is(err, gormlock.ErrNoTransaction) {
			t.Errorf("%v without a transaction: %v", kind, err)
		}
		stand.InTx(t, db, func(rival *gorm.DB) {
			stand.Must(t, gormlock.AcquireXactLock(rival, []lockkey.Key{key}))
			err := db.Transaction(func(tx *gorm.DB) error { return update(tx, kind, gormlock.XactLock(key, gormlock.Try())) })
			if !errors.Is(err, gormlock.ErrNotAcquired) {
				t.Errorf("%v: %v", kind, err)
			}
		})
		err := db.Transaction(func(tx *gorm.DB) error { return update(tx, kind, gormlock.XactLock(key, gormlock.Try())) })
		stand.Equal(t, "it is refused", err != nil, kind != clause.OpCreate)
	}
}

// G29: the lock of Association(…).Append(map) is taken before the row is created.
func TestG29_LockOfAppend(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, fruit)
	b := filled(t, db)
	key := lockkey.Of("append", b.ID)
	for _, name := range []string{"Hints", "Apples"} {
		add := func(tx *gorm.DB) error {
			return tx.Clauses(gormlock.XactLock(key, gormlock.Try())).Model(b).Association(name).Append(map[string]any{"id": 9_000})
		}
		table := map[string]string{"Hints": "hints", "Apples": "apples"}[name]
		stand.InTx(t, db, func(rival *gorm.DB) {
			stand.Must(t, gormlock.AcquireXactLock(rival, []lockkey.Key{key}))
			if err := add(db); !errors.Is(err, gormlock.ErrNotAcquired) {
				t.Errorf("%s: %v", name, err)
			}
		})
		var n int64
		stand.Must(t, db.Table(table).Where("id = 9000").Count(&n).Error)
		stand.Equal(t, name, n, 0)
		stand.Must(t, add(db))
		stand.Must(t, db.Table(table).Where("id = 9000").Count(&n).Error)
		stand.Equal(t, name, n, 1)
	}
}

// V28: a slice of many rows that were read, and a new one, needs no more parameters than it has columns.
func TestV28_ManyRowsAndANewOne(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&hint{}})
	stand.MustDo(t, db.Exec("INSERT INTO hints (text, version) SELECT 'old', 3 + n % 2 FROM generate_series(1, 16000) n"))
	var all []hint
	stand.MustDo(t, db.Order("id").Find(&all))
	all = append(all, hint{Text: "new"})
	for i := range all {
		all[i].Text += "!"
	}
	stale := all[5]
	stand.Must(t, db.Save(&all).Error)
	stand.Equal(t, "last", stand.Row[hint](t, db, all[16_000].ID), hint{ID: all[16_000].ID, Text: "new!", Version: 1})
	stand.Equal(t, "first", all[0], stand.Row[hint](t, db, all[0].ID))
	stand.Equal(t, "first", all[0].Version, 5)
	stand.MustStale(t, db.Save(&[]hint{stale, {Text: "newer"}}).Error)
}

// parcel belongs to its sender.
type (
	sender struct {
		ID   int64
		Name string
	}
	parcel struct {
		ID       int64
		Weight   int
		SenderID *int64
		Sender   *sender
		Version  int64 `gormlock:"version"`
	}
)

// A foreign key that GORM sets in memory only, for it updates from another struct, is what its row has afterwards.
func TestForeignKeysThatGORMDoesNotWrite(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&sender{}, &parcel{}})
	p := stand.Made(t, db, parcel{Weight: 1, Sender: &sender{Name: "a"}})
	own := *p.SenderID
	p.Sender = &sender{Name: "b"}
	stand.Must(t, db.Model(&p).Updates(parcel{Weight: 2}).Error)
	now := stand.Row[parcel](t, db, p.ID)
	stand.Equal(t, "in memory", *p.SenderID, *now.SenderID)
	stand.Equal(t, "versions", p.Version, now.Version)
	stand.Equal(t, "the row", *now.SenderID, own)
}

// A delete by an association names rows by their keys alone. A delete of the line itself compares.
func TestAssociation_takesAwayWithoutComparing(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, shop)
	for name, take := range map[string]func(o *orderRow, stale *line) error{
		"delete": func(o *orderRow, stale *line) error { return db.Model(o).Association("Lines").Unscoped().Delete(stale) },
		"clear":  func(o *orderRow, _ *line) error { return db.Model(o).Association("Lines").Unscoped().Clear() },
		"replace": func(o *orderRow, _ *line) error {
			return db.Model(o).Association("Lines").Unscoped().Replace(&line{Qty: 9})
		},
		"by itself": func(_ *orderRow, stale *line) error { return db.Delete(stale).Error },
	} {
		o := newOrder(t, db)
		stale := o.Lines[0]
		stand.MustDo(t, db.Model(&line{}).Where("id = ?", stale.ID).Update("qty", 5))
		err, left := take(o, &stale), int64(0)
		stand.MustDo(t, db.Model(&line{}).Where("id = ?", stale.ID).Count(&left))
		if name == "by itself" {
			stand.MustStale(t, err)
			stand.Equal(t, name, left, 1)
			continue
		}
		stand.Must(t, err)
		stand.Equal(t, name, left, 0)
	}
}
