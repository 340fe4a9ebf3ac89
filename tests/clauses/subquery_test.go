package clauses_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type order struct {
	ID       int64
	Title    string
	Receipt  *receipt
	ClientID *int64
	Client   *client
	Lines    []orderLine
	Labels   []label `gorm:"many2many:order_labels"`
	Version  int64   `gorm:"not null;default:1" gormlock:"version"`
}

type orderLine struct {
	ID, OrderID, Qty int64
}

type receipt struct {
	ID, OrderID, Qty int64
}

type client struct {
	ID, Qty int64
}

type label struct {
	ID, Qty int64
}

var orders = []any{&client{}, &label{}, &order{}, &orderLine{}, &receipt{}}

// lines are the rows that a test must not change.
func lines(t *testing.T, db *gorm.DB) string {
	t.Helper()
	var all []orderLine
	stand.Must(t, db.Session(&gorm.Session{NewDB: true}).Order("id").Find(&all).Error)
	return fmt.Sprint(all)
}

// asksInASubQuery are clauses that no sub-query can have, with the one of each kind that is faulty, and errors of others.
func asksInASubQuery(db *gorm.DB) map[string]func(q *gorm.DB) *gorm.DB {
	clauses := func(of ...clause.Expression) func(q *gorm.DB) *gorm.DB {
		return func(q *gorm.DB) *gorm.DB { return q.Clauses(of...) }
	}
	asks := map[string]func(q *gorm.DB) *gorm.DB{
		"ExpectVersion":       clauses(gormlock.ExpectVersion(1)),
		"two ExpectVersions":  clauses(gormlock.ExpectVersion(1), gormlock.ExpectVersion(2)),
		"IfMatch":             clauses(stand.IfMatch(`"1"`)),
		"IfUnchanged":         clauses(gormlock.IfUnchanged(&order{ID: 1})),
		"IfUnchanged, faulty": clauses(gormlock.IfUnchanged(7)),
		"VersionClause{}":     clauses(gormlock.VersionClause{}),
		"Fence, no token":     clauses(gormlock.Fence(fence.Token{}), gormlock.ExpectVersion(1)),
		"XactLock":            clauses(gormlock.XactLock(gormlock.Key("sub"))),
		"XactLock, no keys":   clauses(gormlock.XactLock(gormlock.Key())),
		"WithXactLock":        func(q *gorm.DB) *gorm.DB { return q.Scopes(gormlock.WithXactLock(gormlock.Key("sub"))) },
		"RowLock, Try":        clauses(gormlock.RowLock(gormlock.ForUpdate, gormlock.Try())),
		"WithRowLock, Timeout": func(q *gorm.DB) *gorm.DB {
			return q.Scopes(gormlock.WithRowLock(gormlock.ForShare, gormlock.Timeout(time.Second)))
		},
		"RowLock, Try and Skip":     clauses(gormlock.RowLock(gormlock.ForUpdate, gormlock.Try(), gormlock.Skip())),
		"two RowLocks":              clauses(gormlock.RowLock(gormlock.ForUpdate), gormlock.RowLock(gormlock.ForShare)),
		"RowLock, DISTINCT":         func(q *gorm.DB) *gorm.DB { return q.Distinct().Clauses(gormlock.RowLock(gormlock.ForUpdate)) },
		"RowLock, Of another table": clauses(gormlock.RowLock(gormlock.ForUpdate, gormlock.Of("nowhere"))),
		"RowLock of no table": func(q *gorm.DB) *gorm.DB {
			return q.Table("(SELECT 1 AS id) AS orders").Clauses(gormlock.RowLock(gormlock.ForUpdate))
		},
		"a scope with an error": func(q *gorm.DB) *gorm.DB {
			return q.Scopes(func(db *gorm.DB) *gorm.DB { _ = db.AddError(errScope); return db })
		},
		"an error": func(q *gorm.DB) *gorm.DB { _ = q.AddError(errScope); return q },
	}
	if db.Name() == "sqlite" {
		maps.Copy(asks, map[string]func(q *gorm.DB) *gorm.DB{
			"RowLock":        clauses(gormlock.RowLock(gormlock.ForUpdate)),
			"SkipLocked":     clauses(gormlock.SkipLocked()),
			"WithRowLock":    func(q *gorm.DB) *gorm.DB { return q.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)) },
			"WithSkipLocked": func(q *gorm.DB) *gorm.DB { return q.Scopes(gormlock.WithSkipLocked()) },
		})
	}
	return asks
}

var errScope = errors.New("gormlock: or another error")

// aroundASubQuery are statements with a sub-query.
var aroundASubQuery = map[string]func(db *gorm.DB, sub any) error{
	"Find": func(db *gorm.DB, sub any) error {
		return db.Where("order_id NOT IN (?)", sub).Find(&[]orderLine{}).Error
	},
	"First": func(db *gorm.DB, sub any) error { return db.Where("order_id IN (?)", sub).First(&orderLine{}).Error },
	"a table": func(db *gorm.DB, sub any) error {
		return db.Table("(?) AS t", sub).Find(&[]map[string]any{}).Error
	},
	"Joins": func(db *gorm.DB, sub any) error {
		return db.Joins("JOIN (?) AS t ON t.id = order_lines.order_id", sub).Find(&[]orderLine{}).Error
	},
	"Having": func(db *gorm.DB, sub any) error {
		return db.Model(&orderLine{}).Select("order_id").Group("order_id").Having("order_id NOT IN (?)", sub).Scan(&[]int64{}).Error
	},
	"Count": func(db *gorm.DB, sub any) error {
		return db.Model(&orderLine{}).Where("order_id NOT IN (?)", sub).Count(new(int64)).Error
	},
	"Row": func(db *gorm.DB, sub any) error {
		return db.Model(&orderLine{}).Select("qty").Where("order_id NOT IN (?)", sub).Row().Scan(new(int64))
	},
	"Raw": func(db *gorm.DB, sub any) error {
		return db.Raw("SELECT * FROM order_lines WHERE order_id NOT IN (?)", sub).Scan(&[]orderLine{}).Error
	},
	"deeper": func(db *gorm.DB, sub any) error {
		within := db.Session(&gorm.Session{NewDB: true}).Model(&order{}).Select("id").Where("id NOT IN (?)", sub)
		return db.Where("order_id NOT IN (?)", within).Delete(&orderLine{}).Error
	},
	"Update": func(db *gorm.DB, sub any) error {
		return db.Model(&orderLine{}).Where("order_id NOT IN (?)", sub).Update("qty", 9).Error
	},
	"Update, no row": func(db *gorm.DB, sub any) error {
		return db.Model(&orderLine{}).Where("order_id IN (?)", sub).Update("qty", 9).Error
	},
	"a value": func(db *gorm.DB, sub any) error {
		return db.Model(&orderLine{}).Where("id = 1").Update("qty", sub).Error
	},
	"Delete": func(db *gorm.DB, sub any) error {
		return db.Where("order_id NOT IN (?)", sub).Delete(&orderLine{}).Error
	},
	"Exec": func(db *gorm.DB, sub any) error {
		return db.Exec("DELETE FROM order_lines WHERE order_id NOT IN (?)", sub).Error
	},
	"gorm.G, Find": func(db *gorm.DB, sub any) error {
		return stand.ErrorOf(gorm.G[orderLine](db).Where("order_id NOT IN (?)", sub).Find(context.Background()))
	},
	"gorm.G, Update": func(db *gorm.DB, sub any) error {
		return stand.ErrorOf(gorm.G[orderLine](db).Where("order_id NOT IN (?)", sub).Update(context.Background(), "qty", 9))
	},
	"gorm.G, Delete": func(db *gorm.DB, sub any) error {
		return stand.ErrorOf(gorm.G[orderLine](db).Where("order_id NOT IN (?)", sub).Delete(context.Background()))
	},
}

// everyServer runs test on each kind of server, with statements prepared and not.
func everyServer(t *testing.T, test func(t *testing.T, db *gorm.DB)) {
	t.Helper()
	stand.OnEach(t, orders, test)
	t.Run("postgres, prepared", func(t *testing.T) {
		t.Parallel()
		test(t, stand.Versioned(t, orders, pgtest.PrepareStmt()))
	})
	t.Run("sqlite, prepared", func(t *testing.T) {
		t.Parallel()
		test(t, stand.OnSQLite(t, orders, func(c *gorm.Config) { c.PrepareStmt = true }))
	})
	t.Run("mariadb, prepared", func(t *testing.T) {
		t.Parallel()
		test(t, mariaserver.Open(t, orders, mariaserver.Config(func(c *gorm.Config) { c.PrepareStmt = true })))
	})
}

// What a sub-query is refused for refuses the statement around it: GORM drops the error of the one, and to some servers an empty sub-query
// means no row, or every row.
func TestSubQuery_refused(t *testing.T) {
	t.Parallel()
	everyServer(t, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Create(&order{Title: "open", Lines: []orderLine{{Qty: 1}, {Qty: 2}}}).Error)
		before := lines(t, db)
		asks := asksInASubQuery(db)
		for _, name := range slices.Sorted(maps.Keys(asks)) {
			for around, run := range aroundASubQuery {
				stand.InTx(t, db, func(tx *gorm.DB) {
					err := run(tx, asks[name](tx.Session(&gorm.Session{}).Model(&order{}).Select("id")))
					if !isRefusal(err) {
						t.Errorf("%s, %s: %v", name, around, err)
					}
					stand.Equal(t, name+", "+around, lines(t, tx), before)
				})
			}
		}
		for _, c := range []clause.Expression{gormlock.ExpectVersion(1), gormlock.RowLock(gormlock.ForUpdate, gormlock.Try()), gormlock.XactLock(gormlock.Key("sub"))} {
			for around, run := range aroundASubQuery {
				if err := run(db, gorm.G[order](db, c).Select("id")); !isRefusal(err) && around != "a value" { // which GORM puts into no brackets
					t.Errorf("gorm.G with %T, %s: %v", c, around, err)
				}
			}
		}
		stand.Equal(t, "lines", lines(t, db), before)
		for around, run := range aroundASubQuery { // a control
			stand.InTx(t, db, func(tx *gorm.DB) {
				err := run(tx, tx.Session(&gorm.Session{}).Model(&order{}).Select("id"))
				if err != nil && !errors.Is(err, sql.ErrNoRows) {
					t.Errorf("%s, plain: %v", around, err)
				}
			})
		}
	})
}

// isRefusal reports whether err is one of gormlock, and none of a server.
func isRefusal(err error) bool {
	return err != nil && strings.Contains(err.Error(), "gormlock: ") && !stand.FromServer(err)
}

// What gorm.G sets in an association is found by a sub-query of the owners.
func TestSubQuery_ofTheOwnersOfAnAssociation(t *testing.T) {
	t.Parallel()
	everyServer(t, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Create(&order{Lines: []orderLine{{Qty: 1}, {Qty: 2}}, Receipt: &receipt{Qty: 1}, Client: &client{Qty: 1}, Labels: []label{{Qty: 1}}}).Error)
		read := func(tx *gorm.DB) string {
			var all []order
			stand.Must(t, tx.Preload("Lines").Preload("Receipt").Preload("Client").Preload("Labels").Find(&all).Error)
			text, err := json.Marshal(all)
			stand.Must(t, err)
			return string(text)
		}
		before := read(db)
		for name, c := range map[string]clause.Expression{
			"ExpectVersion": gormlock.ExpectVersion(1), "IgnoreVersion": gormlock.IgnoreVersion(), "PreserveVersion": gormlock.PreserveVersion(),
			"IgnoreFence": gormlock.IgnoreFence(), "RowLock": gormlock.RowLock(gormlock.ForUpdate), "SkipLocked": gormlock.SkipLocked(),
			"IfMatch": stand.IfMatch(`"1"`), "XactLock, no keys": gormlock.XactLock(gormlock.Key()),
		} {
			for _, association := range []string{"Lines", "Receipt", "Client", "Labels"} {
				for _, kind := range []clause.AssociationOpType{clause.OpUpdate, clause.OpUnlink, clause.OpDelete} {
					set := clause.Association{Association: association, Type: kind, Set: []clause.Assignment{{Column: clause.Column{Name: "qty"}, Value: 9}}}
					stand.InTx(t, db, func(tx *gorm.DB) {
						_, err := gorm.G[order](tx, c).Where("id = 1").Set(set).Update(t.Context())
						if !isRefusal(err) {
							t.Errorf("%s, %s, %v: %v", name, association, kind, err)
						}
						stand.Equal(t, name+", "+association, read(tx), before)
					})
				}
			}
		}
	})
}
