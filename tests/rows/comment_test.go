package rows_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// behindComments are queries whose text ends in a comment before their lock.
var behindComments = map[string]func(tx *gorm.DB) error{
	"Order": func(tx *gorm.DB) error { return tx.Order("id -- by id").Find(&[]seat{}).Error },
	"Where": func(tx *gorm.DB) error { return tx.Where("id < 9 -- all of them").Find(&[]seat{}).Error },
	"Where with a value": func(tx *gorm.DB) error {
		return tx.Where("id < ? -- all of them", 9).Find(&[]seat{}).Error
	},
	"an expression": func(tx *gorm.DB) error { return tx.Where(gorm.Expr("id < 9 -- all")).Find(&[]seat{}).Error },
	"Or":            func(tx *gorm.DB) error { return tx.Where("id < 2").Or("id > 1 -- the rest").Find(&[]seat{}).Error },
	"Table":         func(tx *gorm.DB) error { return tx.Table("seats -- all").Find(&[]seat{}).Error },
	"Joins": func(tx *gorm.DB) error {
		return tx.Joins("JOIN halls h ON h.id = seats.hall_id -- its hall").Find(&[]seat{}).Error
	},
	"a comment that is closed": func(tx *gorm.DB) error { return tx.Order("id /* -- by ' id */").Find(&[]seat{}).Error },
	"dashes in a string":       func(tx *gorm.DB) error { return tx.Where("name <> 'a--b('").Find(&[]seat{}).Error },
	"a backslash in a string":  func(tx *gorm.DB) error { return tx.Where(`name <> 'a\'`).Find(&[]seat{}).Error },
	"Pluck":                    func(tx *gorm.DB) error { return tx.Model(&seat{}).Order("id -- by id").Pluck("id", &[]int64{}).Error },
	"Scan":                     func(tx *gorm.DB) error { return tx.Model(&seat{}).Order("id -- by id").Scan(&[]seat{}).Error },
	"Row": func(tx *gorm.DB) error {
		var id int64
		rows, err := tx.Model(&seat{}).Select("id").Order("id -- by id").Rows()
		for err == nil && rows.Next() {
			err = rows.Scan(&id)
		}
		if err != nil {
			return err
		}
		return errors.Join(rows.Err(), rows.Close())
	},
	"a sub-query": func(tx *gorm.DB) error {
		return tx.Session(&gorm.Session{NewDB: true}).Where("id IN (?)", tx.Model(&seat{}).Select("id").Order("id -- by id")).Find(&[]seat{}).Error
	},
}

// TestRowLock_behindAComment: a comment at the end of a query does not swallow its lock.
func TestRowLock_behindAComment(t *testing.T) {
	t.Parallel()
	db := seats(t)
	for name, query := range behindComments {
		for how, lock := range map[string]gormlock.RowLockClause{
			"SkipLocked": gormlock.SkipLocked(), "RowLock": gormlock.RowLock(gormlock.ForUpdate),
		} {
			stand.InTx(t, db, func(tx *gorm.DB) {
				stand.Must(t, query(tx.Clauses(lock)))
				if locked := stand.NewRowRival(t).Locked("seats"); len(locked) != 4 {
					t.Errorf("%s, %s: only %d are locked", name, how, locked)
				}
			})
		}
	}
	for name, does := range map[string]func(tx *gorm.DB) error{
		"Try": func(tx *gorm.DB) error {
			return tx.Clauses(gormlock.RowLock(gormlock.ForUpdate, gormlock.Try())).Order("id -- by id").Find(&[]seat{}).Error
		},
		"Timeout": func(tx *gorm.DB) error {
			return tx.Clauses(gormlock.RowLock(gormlock.ForUpdate, gormlock.Timeout(time.Minute))).Order("id -- by id").Find(&[]seat{}).Error
		},
		"gorm.G": func(tx *gorm.DB) error {
			_, err := gorm.G[seat](tx, gormlock.SkipLocked()).Order("id -- by id").Find(t.Context())
			return err
		},
		"LockRows": func(tx *gorm.DB) error {
			return gormlock.LockRows(tx.Table("seats -- all\n"), &[]seat{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4}})
		},
		"Preloaded": func(tx *gorm.DB) error {
			return tx.Clauses(gormlock.RowLock(gormlock.ForUpdate, gormlock.Preloaded())).Preload("Tickets", func(q *gorm.DB) *gorm.DB { return q.Order("id -- by id") }).Find(&[]seat{}).Error
		},
	} {
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.Must(t, does(tx))
			locked := stand.NewRowRival(t).Locked("seats")
			if tickets := stand.NewRowRival(t).Locked("tickets"); len(locked) != 4 || name == "Preloaded" && len(tickets) != 4 {
				t.Errorf("%s: only the seats %d and the tickets %d are locked", name, locked, tickets)
			}
		})
	}
}

// TestClaim_behindAComment: two claims share no row, and both get one.
func TestClaim_behindAComment(t *testing.T) {
	t.Parallel()
	db := seats(t)
	for name, free := range map[string]func(q *gorm.DB) *gorm.DB{
		"Where": func(q *gorm.DB) *gorm.DB { return q.Where("hall_id = 1 -- free") },
		"Order": func(q *gorm.DB) *gorm.DB { return q.Where("hall_id = 1").Order("id -- the first") },
	} {
		stand.InTx(t, db, func(one *gorm.DB) {
			first, err := gormlock.Claim[seat](one, 1, map[string]any{"name": "taken"}, free)
			stand.Must(t, err)
			stand.InTx(t, db, func(other *gorm.DB) {
				second, err := gormlock.Claim[seat](other, 1, map[string]any{"name": "taken"}, free)
				stand.Must(t, err)
				if len(first) != 1 || len(second) != 1 || first[0].ID == second[0].ID {
					t.Errorf("%s: claimed %v and %v", name, first, second)
				}
			})
		})
	}
}

// TestVerifyVersion_behindAComment: the row that is verified is locked.
func TestVerifyVersion_behindAComment(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	stand.Must(t, db.Exec(letters).Error)
	for name, query := range map[string]func(tx *gorm.DB) *gorm.DB{
		"Order":         func(tx *gorm.DB) *gorm.DB { return tx.Order("id -- by id") },
		"GORM's clause": func(tx *gorm.DB) *gorm.DB { return tx.Clauses(clause.Locking{Strength: "UPDATE"}).Order("id -- by id") },
		"RowLock": func(tx *gorm.DB) *gorm.DB {
			return tx.Clauses(gormlock.RowLock(gormlock.ForShare)).Order("id -- by id")
		},
	} {
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.Must(t, gormlock.VerifyVersion(query(tx), &letter{ID: 1, Version: 1}))
			if locked := lockedLetters(t, stand.NewRowRival(t)); !slices.Equal(locked, []int64{1}) {
				t.Errorf("%s: locked are %d", name, locked)
			}
		})
	}
}

// withoutLock are what keeps a lock out of the query that is sent, or the query from being sent.
var withoutLock = map[string]func(db *gorm.DB) *gorm.DB{
	"a scope that builds other clauses": func(db *gorm.DB) *gorm.DB {
		return db.Scopes(func(q *gorm.DB) *gorm.DB {
			q.Statement.BuildClauses = []string{"SELECT", "FROM", "WHERE", "ORDER BY", "LIMIT"}
			return q
		})
	},
	"a callback that builds other clauses": func(db *gorm.DB) *gorm.DB {
		return atQuery(db, func(q *gorm.DB) {
			q.Statement.BuildClauses = []string{"SELECT", "FROM", "WHERE", "ORDER BY", "LIMIT"}
			callbacks.Query(q)
		})
	},
	"a callback that takes the lock away": func(db *gorm.DB) *gorm.DB {
		return atQuery(db, func(q *gorm.DB) {
			delete(q.Statement.Clauses, "FOR")
			callbacks.Query(q)
		})
	},
	"a callback that puts the text in a comment": func(db *gorm.DB) *gorm.DB {
		return atQuery(db, func(q *gorm.DB) {
			callbacks.BuildQuerySQL(q)
			text := strings.Replace(q.Statement.SQL.String(), " FOR ", " -- FOR ", 1)
			q.Statement.SQL.Reset()
			q.Statement.SQL.WriteString(text)
			callbacks.Query(q)
		})
	},
	"a callback that puts the text in a query": func(db *gorm.DB) *gorm.DB {
		return atQuery(db, func(q *gorm.DB) {
			callbacks.BuildQuerySQL(q)
			text := q.Statement.SQL.String()
			q.Statement.SQL.Reset()
			q.Statement.SQL.WriteString("WITH q AS (SELECT 1 WHERE EXISTS (" + text + ")) SELECT * FROM seats WHERE EXISTS (TABLE q)")
			callbacks.Query(q)
		})
	},
	"a cache": func(db *gorm.DB) *gorm.DB {
		return atQuery(db, func(q *gorm.DB) {
			callbacks.BuildQuerySQL(q)
			q.RowsAffected = 1
		})
	},
}

// atQuery takes the place of GORM's own callbacks that read.
func atQuery(db *gorm.DB, query func(q *gorm.DB)) *gorm.DB {
	_ = db.Callback().Query().Replace("gorm:query", query)
	return db
}

// TestRowLock_thatIsNotSent: a query whose lock does not reach the server is an error, and the transaction goes on.
func TestRowLock_thatIsNotSent(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(withoutLock)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := seats(t, pgtest.Config(func(c *gorm.Config) { c.SkipDefaultTransaction = true }))
			strip := withoutLock[name]
			for call, lock := range map[string]func(tx *gorm.DB) error{
				"Find": func(tx *gorm.DB) error { return tx.Clauses(gormlock.SkipLocked()).Order("id").Find(&[]seat{}).Error },
				"Try": func(tx *gorm.DB) error {
					return tx.Clauses(gormlock.RowLock(gormlock.ForUpdate, gormlock.Try())).Find(&[]seat{}).Error
				},
				"LockRow": func(tx *gorm.DB) error { return gormlock.LockRow(tx, &seat{ID: 1}) },
			} {
				stand.InTx(t, db, func(tx *gorm.DB) {
					err := lock(strip(tx))
					if err == nil || !strings.Contains(err.Error(), "gormlock: ") || !strings.Contains(err.Error(), "row lock") {
						t.Errorf("%s: %v", call, err)
					}
					stand.Must(t, tx.Exec("SELECT 1").Error)
				})
			}
		})
	}
	t.Run("of what the caller scans", func(t *testing.T) {
		t.Parallel()
		db := seats(t)
		strip := func(tx *gorm.DB) *gorm.DB { return withoutLock["a scope that builds other clauses"](tx.Model(&seat{})) }
		stand.Must(t, db.Callback().Row().Replace("gorm:row", func(q *gorm.DB) {
			if _, strips := q.Get("strip"); strips {
				delete(q.Statement.Clauses, "FOR")
			}
			callbacks.RowQuery(q)
		}))
		for call, lock := range map[string]func(tx *gorm.DB) error{
			"Scan": func(tx *gorm.DB) error { return tx.Scan(&[]seat{}).Error },
			"Row":  func(tx *gorm.DB) error { return tx.Select("id").Limit(1).Row().Scan(new(int64)) },
			"Rows": func(tx *gorm.DB) error { _, err := tx.Rows(); return err }, //nolint:rowserrcheck,sqlclosecheck // there are none
		} {
			for how, strip := range map[string]func(tx *gorm.DB) *gorm.DB{
				"a scope":    strip,
				"a callback": func(tx *gorm.DB) *gorm.DB { return tx.Model(&seat{}).Set("strip", true) },
			} {
				stand.InTx(t, db, func(tx *gorm.DB) {
					err := lock(strip(tx.Clauses(gormlock.SkipLocked())))
					if err == nil || !strings.Contains(err.Error(), "gormlock: ") || !strings.Contains(err.Error(), "row lock") {
						t.Errorf("%s, %s: %v", call, how, err)
					}
					stand.Must(t, tx.Exec("SELECT 1").Error)
				})
			}
		}
	})
	t.Run("of a sub-query", func(t *testing.T) {
		t.Parallel()
		db := seats(t)
		stand.InTx(t, db, func(tx *gorm.DB) {
			sub := withoutLock["a scope that builds other clauses"](tx.Session(&gorm.Session{NewDB: true}).Model(&seat{}).Select("id").Clauses(gormlock.SkipLocked()))
			if err := tx.Where("id IN (?)", sub).Find(&[]seat{}).Error; err == nil {
				t.Error("it is no error")
			}
		})
	})
}
