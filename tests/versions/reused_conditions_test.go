package versions_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A reusedParcel is deleted softly, a reusedCrate for good.
type reusedParcel struct {
	ID        int64
	State     string
	Weight    int64
	DeletedAt gorm.DeletedAt
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`
}

type reusedCrate struct {
	ID      int64
	State   string
	Weight  int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A statement of a chain that was used before has the conditions of those before it. On the tx of db.Connection, and after a write, what it
// writes is what it would write by a chain of its own, or it is an error.
func TestReusedChain_conditions(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&reusedParcel{}, &reusedCrate{}})
	reusedConditions(t, db, "reused_parcels", func(id, version int64, state string, weight int64) *reusedParcel {
		return &reusedParcel{ID: id, Version: version, State: state, Weight: weight}
	})
	reusedConditions(t, db, "reused_crates", func(id, version int64, state string, weight int64) *reusedCrate {
		return &reusedCrate{ID: id, Version: version, State: state, Weight: weight}
	})
}

func failed(tx *gorm.DB, err error) *gorm.DB {
	result := tx.Session(&gorm.Session{NewDB: true})
	_ = result.AddError(err)
	return result
}

func reusedConditions[T any](t *testing.T, db *gorm.DB, table string, made func(id, version int64, state string, weight int64) *T) {
	t.Helper()
	plain := pgtest.Open(t, pgtest.Schema())
	row := func(id, version int64) *T { return made(id, version, "mine", 7) }
	none, many := func() *T { return new(T) }, func() *[]T { return new([]T) }
	claim := func(tx *gorm.DB) error {
		_, err := gormlock.Claim[T](tx, 5, map[string]any{"weight": 6}, func(q *gorm.DB) *gorm.DB { return q.Where("id = 2") })
		return err
	}
	writes := map[string]func(tx *gorm.DB) *gorm.DB{
		"bulk":           func(tx *gorm.DB) *gorm.DB { return tx.Model(none()).Where("id = 2").Update("weight", 5) },
		"bulk by column": func(tx *gorm.DB) *gorm.DB { return tx.Model(none()).Where("id", 2).Update("weight", 5) },
		"bulk of many":   func(tx *gorm.DB) *gorm.DB { return tx.Model(none()).Where("weight > 1").Update("weight", 5) },
		"struct":         func(tx *gorm.DB) *gorm.DB { return tx.Model(row(2, 1)).Update("weight", 5) },
		"struct where":   func(tx *gorm.DB) *gorm.DB { return tx.Model(row(2, 1)).Where("weight > 1").Update("weight", 5) },
		"first again":    func(tx *gorm.DB) *gorm.DB { return tx.Model(row(1, 2)).Update("weight", 5) },
		"save":           func(tx *gorm.DB) *gorm.DB { return tx.Save(row(2, 1)) },
		"save where":     func(tx *gorm.DB) *gorm.DB { return tx.Where("weight > 1").Save(row(2, 1)) },
		"delete":         func(tx *gorm.DB) *gorm.DB { return tx.Delete(row(2, 1)) },
		"delete by key":  func(tx *gorm.DB) *gorm.DB { return tx.Delete(none(), 2) },
		"delete where":   func(tx *gorm.DB) *gorm.DB { return tx.Where("id = 2").Delete(none()) },
		"create":         func(tx *gorm.DB) *gorm.DB { return tx.Create(row(9, 0)) },
		"touch":          func(tx *gorm.DB) *gorm.DB { return failed(tx, gormlock.Touch(tx, row(2, 1))) },
		"merge": func(tx *gorm.DB) *gorm.DB {
			return failed(tx, gormlock.SaveMerged(tx, row(2, 1), made(2, 1, "new", 2)))
		},
		"claim": func(tx *gorm.DB) *gorm.DB { return failed(tx, claim(tx)) },
		"bulk of all": func(tx *gorm.DB) *gorm.DB {
			return tx.Session(&gorm.Session{AllowGlobalUpdate: true}).Model(none()).Update("weight", 5)
		},
		"delete of all": func(tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{AllowGlobalUpdate: true}).Delete(none()) },
		"updates":       func(tx *gorm.DB) *gorm.DB { return tx.Updates(made(2, 1, "mine", 0)) },
		"updates form":  func(tx *gorm.DB) *gorm.DB { return tx.Model(row(2, 1)).Updates(made(0, 0, "mine", 0)) },
		"updates map": func(tx *gorm.DB) *gorm.DB {
			return tx.Model(row(2, 1)).Updates(map[string]any{"state": "mine", "weight": 7})
		},
		"save selected": func(tx *gorm.DB) *gorm.DB { return tx.Select("weight").Save(row(2, 1)) },
		"save but":      func(tx *gorm.DB) *gorm.DB { return tx.Omit("state").Save(row(2, 1)) },
		"save ignoring": func(tx *gorm.DB) *gorm.DB { return tx.Clauses(gormlock.IgnoreVersion()).Save(row(2, 7)) },
		"save unscoped": func(tx *gorm.DB) *gorm.DB { return tx.Unscoped().Save(row(2, 1)) },
		"save slice":    func(tx *gorm.DB) *gorm.DB { return tx.Save([]*T{row(2, 1)}) },
		"save stale":    func(tx *gorm.DB) *gorm.DB { return tx.Save(row(2, 7)) },
		"create new":    func(tx *gorm.DB) *gorm.DB { return tx.Create(made(0, 0, "mine", 7)) },
		"create again":  func(tx *gorm.DB) *gorm.DB { return tx.Create(row(2, 0)) },
		"upsert": func(tx *gorm.DB) *gorm.DB {
			return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(row(2, 0))
		},
		"upsert all": func(tx *gorm.DB) *gorm.DB {
			return tx.Clauses(gormlock.IgnoreVersion(), clause.OnConflict{UpdateAll: true}).Create(row(2, 0))
		},
		"unscoped delete": func(tx *gorm.DB) *gorm.DB { return tx.Unscoped().Delete(row(2, 1)) },
	}
	firsts := map[string]func(tx *gorm.DB) *gorm.DB{
		"nothing":          func(tx *gorm.DB) *gorm.DB { return tx },
		"bulk":             func(tx *gorm.DB) *gorm.DB { return tx.Model(none()).Where("id = 1").Update("weight", 4) },
		"bulk of none":     func(tx *gorm.DB) *gorm.DB { return tx.Model(none()).Where("id = 404").Update("weight", 4) },
		"struct":           func(tx *gorm.DB) *gorm.DB { return tx.Model(row(1, 1)).Update("weight", 4) },
		"struct where":     func(tx *gorm.DB) *gorm.DB { return tx.Model(row(1, 1)).Where("weight = 1").Update("weight", 4) },
		"save":             func(tx *gorm.DB) *gorm.DB { return tx.Save(row(1, 1)) },
		"delete":           func(tx *gorm.DB) *gorm.DB { return tx.Delete(row(3, 1)) },
		"delete where":     func(tx *gorm.DB) *gorm.DB { return tx.Delete(none(), "id = 3") },
		"create":           func(tx *gorm.DB) *gorm.DB { return tx.Create(row(8, 0)) },
		"touch":            func(tx *gorm.DB) *gorm.DB { return failed(tx, gormlock.Touch(tx, row(1, 1))) },
		"read: find":       func(tx *gorm.DB) *gorm.DB { return tx.Find(many(), "weight = 1") },
		"read: find where": func(tx *gorm.DB) *gorm.DB { return tx.Where("id = 1").Find(many()) },
		"read: find all":   func(tx *gorm.DB) *gorm.DB { return tx.Find(many()) },
		"read: first":      func(tx *gorm.DB) *gorm.DB { return tx.First(none(), 1) },
		"read: take":       func(tx *gorm.DB) *gorm.DB { return tx.Where("id = 1").Take(none()) },
		"read: count":      func(tx *gorm.DB) *gorm.DB { return tx.Model(none()).Where("id = 1").Count(new(int64)) },
		"read: pluck":      func(tx *gorm.DB) *gorm.DB { return tx.Model(none()).Where("id = 1").Pluck("id", &[]int64{}) },
		"read: scan":       func(tx *gorm.DB) *gorm.DB { return tx.Model(none()).Where("id = 1").Scan(&map[string]any{}) },
		"read: row": func(tx *gorm.DB) *gorm.DB {
			return failed(tx, tx.Model(none()).Select("id").Where("id = 1").Row().Scan(new(int64)))
		},
		"read: select":    func(tx *gorm.DB) *gorm.DB { return tx.Select("id", "weight").Find(many()) },
		"read: omit":      func(tx *gorm.DB) *gorm.DB { return tx.Omit("weight").Find(many()) },
		"read: unscoped":  func(tx *gorm.DB) *gorm.DB { return tx.Unscoped().Find(many()) },
		"read: limit":     func(tx *gorm.DB) *gorm.DB { return tx.Order("id").Limit(1).Find(many()) },
		"read: first of":  func(tx *gorm.DB) *gorm.DB { return tx.First(row(1, 0)) },
		"save selected":   func(tx *gorm.DB) *gorm.DB { return tx.Select("state").Save(row(1, 1)) },
		"save but":        func(tx *gorm.DB) *gorm.DB { return tx.Omit("weight").Save(row(1, 1)) },
		"save unscoped":   func(tx *gorm.DB) *gorm.DB { return tx.Unscoped().Save(row(1, 1)) },
		"save ignoring":   func(tx *gorm.DB) *gorm.DB { return tx.Clauses(gormlock.IgnoreVersion()).Save(row(1, 1)) },
		"save expecting":  func(tx *gorm.DB) *gorm.DB { return tx.Clauses(gormlock.ExpectVersion(1)).Save(row(1, 1)) },
		"save preserving": func(tx *gorm.DB) *gorm.DB { return tx.Clauses(gormlock.PreserveVersion()).Save(row(1, 1)) },
		"save slice":      func(tx *gorm.DB) *gorm.DB { return tx.Save([]*T{row(1, 1)}) },
		"upsert":          func(tx *gorm.DB) *gorm.DB { return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(row(8, 0)) },
		"upsert all": func(tx *gorm.DB) *gorm.DB {
			return tx.Clauses(gormlock.IgnoreVersion(), clause.OnConflict{UpdateAll: true}).Create(row(8, 0))
		},
		"create some": func(tx *gorm.DB) *gorm.DB { return tx.Select("id", "weight").Create(row(8, 0)) },
		"create but":  func(tx *gorm.DB) *gorm.DB { return tx.Omit("weight").Create(row(8, 0)) },
	}
	chains := map[string]func(use func(chain *gorm.DB)){
		"connection": func(use func(chain *gorm.DB)) {
			stand.Must(t, db.Connection(func(tx *gorm.DB) error { use(tx); return nil }))
		},
		"sessions of a connection": func(use func(chain *gorm.DB)) {
			stand.Must(t, db.Connection(func(tx *gorm.DB) error { use(tx.Session(&gorm.Session{})); return nil }))
		},
		"chain": func(use func(chain *gorm.DB)) { use(db.Where("weight < 100")) },
		"db":    func(use func(chain *gorm.DB)) { use(db.WithContext(context.Background())) },
	}
	after := func(do func()) string {
		stand.MustDo(t, plain.Exec("DELETE FROM "+table))
		stand.MustDo(t, plain.Exec("INSERT INTO "+table+" (id, state, weight) VALUES (1, 'new', 1), (2, 'new', 2), (3, 'new', 3)"))
		stand.MustDo(t, plain.Exec("ALTER SEQUENCE "+table+"_id_seq RESTART WITH 50"))
		do()
		var rows []string
		stand.MustDo(t, plain.Raw("SELECT to_jsonb(t) - 'deleted_at' || jsonb_build_object('gone', to_jsonb(t) ->> 'deleted_at' IS NOT NULL) FROM "+table+" t ORDER BY id").Scan(&rows))
		return strings.Join(rows, "\n")
	}
	works := map[string][]string{ // on a connection, as in GORM
		"save":           {"save", "struct", "bulk", "bulk of all", "save slice", "create", "create new", "delete", "updates map", "save but", "save ignoring", "upsert", "touch"},
		"save slice":     {"save slice", "upsert", "struct"},
		"save unscoped":  {"save", "save slice", "struct", "create", "updates map"},
		"save but":       {"save but", "delete"},
		"save ignoring":  {"save ignoring"},
		"upsert":         {"upsert", "save slice"},
		"upsert all":     {"upsert all"},
		"create":         {"create", "create new", "save slice", "struct", "bulk", "upsert"},
		"read: unscoped": {"create", "save slice"},
	}
	refused := map[string]int{}
	for first, do := range firsts {
		for second, write := range writes {
			var wanted error
			want := after(func() {
				chains["db"](func(db *gorm.DB) { _ = do(db) })
				chains["db"](func(db *gorm.DB) { wanted = write(db).Error })
			})
			for chain, through := range chains {
				what := fmt.Sprintf("%s of %s: %s, then %s", chain, table, first, second)
				var err error
				got := after(func() {
					through(func(tx *gorm.DB) {
						if err = do(tx).Error; err == nil {
							err = write(tx).Error
						}
					})
				})
				switch lasting := chain == "connection" || chain == "chain"; {
				case err == nil && got != want:
					if (chain != "chain" || !isMeant(first, second)) && (chain != "connection" || !isUnseen(first, second)) {
						t.Errorf("%s: nil, and there is\n%s\nnot\n%s", what, got, want)
					}
				case err != nil && wanted == nil && lasting:
					refused[chain]++
					if chain == "connection" && slices.Contains(works[first], second) || second == "create new" && !strings.HasPrefix(first, "read") && !isGiven(first) {
						t.Errorf("%s: %v", what, err)
					}
					if first == "nothing" && (chain != "chain" || !slices.Contains([]string{"save slice", "upsert all"}, second)) || first == "create" && slices.Contains([]string{"bulk", "bulk by column", "struct", "struct where"}, second) {
						t.Errorf("%s: %v", what, err)
					}
				case err != nil && wanted == nil:
					t.Errorf("%s: %v", what, err)
				}
			}
		}
	}
	t.Logf("refused of %s: %v of %d each", table, refused, len(firsts)*len(writes))
}

// A chain keeps the struct whose associations it was asked for. Save does not write that one in place of its own.
func TestReusedChain_ofAnAssociation(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&deletedShop{}, &deletedOrder{}, &deletedItem{}})
	for name, chain := range map[string]func(use func(tx *gorm.DB) error) error{
		"connection": db.Connection,
		"chain":      func(use func(tx *gorm.DB) error) error { return use(db.Where("id > 0")) },
	} {
		shop, other := deletedShop{Orders: []deletedOrder{{}, {}}}, deletedShop{}
		stand.MustDo(t, db.Create(&shop))
		stand.MustDo(t, db.Create(&other))
		one, two := shop.Orders[0], shop.Orders[1]
		two.ShopID = other.ID
		err := chain(func(tx *gorm.DB) error {
			if err := tx.Model(&one).Association("Items").Append(&deletedItem{}); err != nil {
				return err
			}
			return tx.Select("ShopID").Save(&two).Error
		})
		if stored := stand.Row[deletedOrder](t, db, one.ID); err == nil || stored.ShopID != shop.ID {
			t.Errorf("%s: %v, and the other one is %+v", name, err, stored)
		}
	}
}

// isMeant reports whether what a statement gave to a chain may be meant for the next one too: its caller has made that chain.
func isMeant(first, second string) bool {
	return strings.HasPrefix(first, "read") || strings.HasSuffix(second, "of all") || isGiven(first) ||
		first == "save" && strings.HasPrefix(second, "updates") // as by Select("*")
}

// isGiven reports whether a statement was given more than conditions.
func isGiven(first string) bool {
	return slices.Contains([]string{
		"save selected", "save but", "save unscoped", "save ignoring", "save expecting", "save preserving", "save slice", "upsert", "upsert all", "create some", "create but",
	}, first)
}

// isUnseen reports whether the caller's Select stands for what Save would have left in the chain. Nothing else does, because GORM runs it by a
// copy of the chain.
func isUnseen(first, second string) bool {
	return first == "save selected" || first == "save preserving" && second == "save selected"
}
