package gormlocktest_test

import (
	"database/sql/driver"
	"fmt"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/gormlocktest"
)

type account struct {
	ID      int64
	Balance int64
	Version int64 `gormlock:"version"`
}

type list struct {
	ID    int64
	Items []item
}

type item struct{ ID, ListID int64 }

// far is a versioned table in a schema of its own.
type far account

func (far) TableName() string { return "gormlocktest.accounts" }

type note struct {
	ID      int64
	Text    string
	Version time.Time `gormlock:"version"`
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

type report struct {
	ID    int64
	Body  string
	Fence int64 `gormlock:"fence"`
}

func accountRows(rows ...[]driver.Value) *sqlmock.Rows {
	return sqlmock.NewRows([]string{"id", "balance", "version"}).AddRows(rows...)
}

// finds expects a query that finds account 1.
func finds(query string) func(*stage) {
	return func(s *stage) { s.mock.ExpectQuery(query).WillReturnRows(accountRows([]driver.Value{1, 0, 3})) }
}

// locks expects a query that locks what it finds.
func locks(wait gormlock.WaitOption, query func(*stage)) func(*stage) {
	return func(s *stage) {
		gormlocktest.ExpectRowLock(s, s.mock, wait)
		query(s)
		gormlocktest.ExpectRowLocked(s, s.mock, wait)
	}
}

// isRefused expects a query that finds a row which somebody else has locked.
func isRefused(wait gormlock.WaitOption, query string) func(*stage) {
	return func(s *stage) {
		gormlocktest.ExpectRowLock(s, s.mock, wait)
		s.mock.ExpectQuery(query).WillReturnError(gormlocktest.ErrLockNotAvailable)
		gormlocktest.ExpectUndo(s.mock)
	}
}

// TestLocksOfRows: what is expected of row locks is what gormlock sends.
func TestLocksOfRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]scene{
		"that wait": {
			expect: finds(`^SELECT .* FOR NO KEY UPDATE$`),
			do:     func(s *stage) error { return s.find(gormlock.WithRowLock(gormlock.ForNoKeyUpdate)) },
		},
		"that are skipped": {
			expect: finds(`^SELECT .* FOR UPDATE SKIP LOCKED$`),
			do:     func(s *stage) error { return s.find(gormlock.WithSkipLocked()) },
		},
		"with a timeout": {
			expect: locks(gormlock.Timeout(soon), finds(`^SELECT .* FOR UPDATE$`)),
			do:     func(s *stage) error { return s.find(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Timeout(soon))) },
		},
		"with the timeout of the plugin": {
			plugin: []gormlock.Option{gormlock.DefaultTimeout(soon)},
			expect: locks(gormlock.Timeout(soon), finds(`^SELECT .* FOR UPDATE$`)),
			do:     func(s *stage) error { return s.find(gormlock.WithRowLock(gormlock.ForUpdate)) },
		},
		"that come too late": {
			expect: isRefused(gormlock.Timeout(soon), `^SELECT .* FOR UPDATE$`),
			real:   func(s *stage) { s.locked("SELECT FROM accounts") },
			do:     func(s *stage) error { return s.find(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Timeout(soon))) },
			want:   gormlock.ErrLockTimeout,
		},
		"with Try": {
			expect: locks(gormlock.Try(), finds(`^SELECT .* FOR UPDATE NOWAIT$`)),
			do:     func(s *stage) error { return s.find(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Try())) },
		},
		"that are refused": {
			expect: isRefused(gormlock.Try(), `^SELECT .* FOR UPDATE NOWAIT$`),
			real:   func(s *stage) { s.locked("SELECT FROM accounts") },
			do:     func(s *stage) error { return s.find(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Try())) },
			want:   gormlock.ErrNotAcquired,
		},
		"LockRow": {
			expect: finds(`^SELECT .* FOR UPDATE SKIP LOCKED$`),
			do:     func(s *stage) error { return s.lockRow(gormlock.Try()) },
		},
		"LockRow, refused": {
			expect: func(s *stage) {
				s.mock.ExpectQuery(`^SELECT .* FOR UPDATE SKIP LOCKED$`).WillReturnRows(accountRows())
				s.mock.ExpectQuery(`^SELECT coalesce.* FROM "accounts" `).WillReturnRows(sqlmock.NewRows([]string{"gormlock_policies"}).AddRow(false))
			},
			real: func(s *stage) { s.locked("SELECT FROM accounts") },
			do:   func(s *stage) error { return s.lockRow(gormlock.Try()) },
			want: gormlock.ErrNotAcquired,
		},
		"LockRow, gone": {
			expect: func(s *stage) {
				s.mock.ExpectQuery(`^SELECT .* FOR UPDATE SKIP LOCKED$`).WillReturnRows(accountRows())
				s.mock.ExpectQuery(`^SELECT coalesce.* FROM "accounts" `).WillReturnRows(sqlmock.NewRows([]string{"gormlock_policies"}))
			},
			real: func(s *stage) { s.exec("DELETE FROM accounts") },
			do:   func(s *stage) error { return s.lockRow(gormlock.Try()) },
			want: gorm.ErrRecordNotFound,
		},
		"LockRow with a timeout": {
			expect: locks(gormlock.Timeout(soon), finds(`^SELECT .* FOR UPDATE$`)),
			do:     func(s *stage) error { return s.lockRow(gormlock.Timeout(soon)) },
		},
		"with what is preloaded": {
			expect: func(s *stage) {
				gormlocktest.ExpectRowLock(s, s.mock, gormlock.Try())
				s.mock.ExpectQuery(`^SELECT .* FROM "lists" .* FOR UPDATE NOWAIT$`).WillReturnRows(sqlmock.NewRows([]string{"id"}).AddRow(1))
				gormlocktest.ExpectRowLocked(s, s.mock, gormlock.Try())
				gormlocktest.ExpectRowLock(s, s.mock, gormlock.Try())
				s.mock.ExpectQuery(`^SELECT .* FROM "items" .* FOR UPDATE NOWAIT$`).WillReturnRows(sqlmock.NewRows([]string{"id", "list_id"}).AddRow(1, 1))
				gormlocktest.ExpectRowLocked(s, s.mock, gormlock.Try())
			},
			real: func(s *stage) {
				s.exec("CREATE TABLE lists (id bigint); INSERT INTO lists VALUES (1); CREATE TABLE items (id bigint, list_id bigint); INSERT INTO items VALUES (1, 1)")
			},
			do: func(s *stage) error {
				lock := gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Try(), gormlock.Preloaded())
				return s.db.Scopes(lock).Preload("Items").First(&list{}, 1).Error
			},
		},
		"LockRows": {
			expect: func(s *stage) {
				gormlocktest.ExpectRowLock(s, s.mock, gormlock.Try())
				s.mock.ExpectQuery(`^SELECT .* FOR UPDATE NOWAIT$`).WillReturnRows(accountRows([]driver.Value{1, 0, 3}, []driver.Value{2, 0, 3}))
				gormlocktest.ExpectRowLocked(s, s.mock, gormlock.Try())
			},
			do: func(s *stage) error { return gormlock.LockRows(s.db, &[]account{{ID: 2}, {ID: 1}}, gormlock.Try()) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.inTransaction().play(t)
		})
	}
}

// inTransaction is the scene in a transaction of its own.
func (c scene) inTransaction() scene {
	c = c.inTransactionOfGORM()
	do := c.do
	c.do = func(s *stage) error {
		return s.db.Transaction(func(tx *gorm.DB) error {
			inside := *s
			inside.db = tx
			return do(&inside)
		})
	}
	return c
}

func (s *stage) find(lock func(*gorm.DB) *gorm.DB) error {
	var found []account
	err := s.db.Scopes(lock).Where("id = 1").Find(&found).Error
	if err == nil && (len(found) != 1 || found[0].Version != 3) {
		return fmt.Errorf("found %v", found)
	}
	return err
}

func (s *stage) lockRow(wait gormlock.WaitOption) error {
	row := account{ID: 1}
	err := gormlock.LockRow(s.db, &row, wait)
	if err == nil && row.Version != 3 {
		return fmt.Errorf("locked %v", row)
	}
	return err
}

// TestVersions: what is expected of versioned writes is what gormlock sends.
func TestVersions(t *testing.T) {
	t.Parallel()
	update := func(s *stage) error { return s.db.Model(&account{ID: 1, Version: 3}).Update("balance", 5).Error }
	none := sqlmock.NewResult(0, 0)
	idVersion := []string{"id", "version"}
	overtaken := func(s *stage) { s.exec("UPDATE accounts SET version = 4") }
	staleUpdate := func(s *stage) {
		gormlocktest.ExpectVersionedUpdate(s.mock, "accounts", "version").WillReturnResult(none)
		gormlocktest.ExpectStale(s.mock, "accounts", idVersion, []driver.Value{1, 4})
	}
	both := func(s *stage) {
		gormlocktest.ExpectVersionedReturning(s.mock, "accounts", "version", []string{"id"}, []driver.Value{1}, []driver.Value{2})
	}
	for name, c := range map[string]scene{
		"an update": {
			expect: func(s *stage) { gormlocktest.ExpectVersionedUpdate(s.mock, "accounts", "version") },
			do:     update,
		},
		"Save": {
			expect: func(s *stage) { gormlocktest.ExpectVersionedUpdate(s.mock, "accounts", "version") },
			do:     func(s *stage) error { return s.db.Save(&account{ID: 1, Version: 3}).Error },
		},
		"Touch": {
			expect: func(s *stage) { gormlocktest.ExpectVersionedUpdate(s.mock, "accounts", "version") },
			do:     (*stage).touch,
		},
		"Touch, stale": {
			expect: staleUpdate,
			real:   overtaken,
			do:     (*stage).touch,
			want:   gormlock.ErrStale,
		},
		"an expression": {
			expect: func(s *stage) {
				gormlocktest.ExpectVersionedReturning(s.mock, "accounts", "version", []string{"balance"}, []driver.Value{5})
			},
			do: func(s *stage) error {
				return s.db.Model(&account{ID: 1, Version: 3}).Updates(map[string]any{"balance": gorm.Expr("balance + 5")}).Error
			},
		},
		"several structs": {
			expect: both,
			do:     func(s *stage) error { return s.db.Model(several()).Update("balance", 5).Error },
		},
		"several structs, deleted": {
			expect: both,
			do:     func(s *stage) error { return s.db.Delete(several()).Error },
		},
		"several structs, one stale": {
			expect: func(s *stage) {
				gormlocktest.ExpectVersionedReturning(s.mock, "accounts", "version", []string{"id"}, []driver.Value{1})
				gormlocktest.ExpectStale(s.mock, "accounts", idVersion, []driver.Value{2, 4})
			},
			real: func(s *stage) { s.exec("UPDATE accounts SET version = 4 WHERE id = 2") },
			do:   func(s *stage) error { return s.db.Model(several()).Update("balance", 5).Error },
			want: gormlock.ErrStale,
		},
		"an update with conditions": {
			expect: func(s *stage) { gormlocktest.ExpectVersionedUpdate(s.mock, "accounts", "version") },
			do: func(s *stage) error {
				return s.db.Clauses(gormlock.ExpectVersion(3)).Model(&account{}).Where("id = 1 OR id = 1").Update("balance", 5).Error
			},
		},
		"a time": {
			expect: func(s *stage) {
				gormlocktest.ExpectVersionedReturning(s.mock, "notes", "version", []string{"version"}, []driver.Value{noon.Add(time.Hour)})
			},
			real: func(s *stage) {
				s.exec("CREATE TABLE notes (id bigint PRIMARY KEY, text text, version timestamptz); INSERT INTO notes VALUES (1, '', '" + noon.Format(time.RFC3339) + "')")
			},
			do: func(s *stage) error { return s.db.Model(&note{ID: 1, Version: noon}).Update("text", "x").Error },
		},
		"a delete": {
			expect: func(s *stage) { gormlocktest.ExpectVersionedDelete(s.mock, "accounts", "version") },
			do:     func(s *stage) error { return s.db.Delete(&account{ID: 1, Version: 3}).Error },
		},
		"a table in a schema": {
			expect: func(s *stage) {
				gormlocktest.ExpectVersionedUpdate(s.mock, "gormlocktest.accounts", "version").WillReturnResult(none)
				gormlocktest.ExpectStale(s.mock, "gormlocktest.accounts", idVersion, []driver.Value{1, 4})
			},
			real: func(s *stage) {
				s.exec("DROP SCHEMA IF EXISTS gormlocktest CASCADE; CREATE SCHEMA gormlocktest; CREATE TABLE gormlocktest.accounts AS SELECT id, balance, version + 1 AS version FROM accounts")
			},
			do:   func(s *stage) error { return s.db.Model(&far{ID: 1, Version: 3}).Update("balance", 5).Error },
			want: gormlock.ErrStale,
		},
		"an update that is stale": {
			expect: staleUpdate,
			real:   overtaken,
			do:     update,
			want:   gormlock.ErrStale,
		},
		"an update of a row that is gone": {
			expect: func(s *stage) {
				gormlocktest.ExpectVersionedUpdate(s.mock, "accounts", "version").WillReturnResult(none)
				gormlocktest.ExpectStale(s.mock, "accounts", idVersion)
			},
			real: func(s *stage) { s.exec("DELETE FROM accounts") },
			do:   update,
			want: gormlock.ErrStale,
		},
		"a delete that is stale": {
			expect: func(s *stage) {
				gormlocktest.ExpectVersionedDelete(s.mock, "accounts", "version").WillReturnResult(none)
				gormlocktest.ExpectStale(s.mock, "accounts", idVersion, []driver.Value{1, 4})
			},
			real: overtaken,
			do:   func(s *stage) error { return s.db.Delete(&account{ID: 1, Version: 3}).Error },
			want: gormlock.ErrStale,
		},
		"VerifyVersion": {
			expect: func(s *stage) { gormlocktest.ExpectStale(s.mock, "accounts", idVersion, []driver.Value{1, 4}) },
			real:   func(s *stage) { s.exec("UPDATE accounts SET version = 4") },
			do: func(s *stage) error {
				return s.db.Transaction(func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx, &account{ID: 1, Version: 3}) })
			},
			want: gormlock.ErrStale,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.inTransactionOfGORM().play(t)
		})
	}
}

func several() *[]account { return &[]account{{ID: 1, Version: 3}, {ID: 2, Version: 3}} }

func (s *stage) touch() error {
	row := account{ID: 1, Version: 3}
	err := gormlock.Touch(s.db, &row)
	if err == nil && row.Version != 4 {
		return fmt.Errorf("touched, and the struct is at %d", row.Version)
	}
	return err
}

// inTransactionOfGORM is the scene of a statement, for which GORM begins a transaction.
func (c scene) inTransactionOfGORM() scene {
	expect := c.expect
	c.expect = func(s *stage) {
		s.mock.ExpectBegin()
		expect(s)
		if c.want == nil {
			s.mock.ExpectCommit()
		} else {
			s.mock.ExpectRollback()
		}
	}
	return c
}

// TestFences: what is expected of fenced writes is what gormlock sends.
func TestFences(t *testing.T) {
	t.Parallel()
	key := gormlock.Key("report", 1)
	token, err := fence.For(key, 7)
	if err != nil {
		t.Fatal(err)
	}
	issued := func(s *stage, number int64) {
		s.exec(fmt.Sprintf("INSERT INTO gormlock_fence (space, id, name, token) VALUES (%d, %d, '', %d)", token.Space, token.ID, number))
	}
	update := func(s *stage) error {
		return s.db.Clauses(gormlock.Fence(token)).Model(&report{ID: 1}).Update("body", "done").Error
	}
	latest := func(number int) func(*stage) {
		return func(s *stage) {
			s.mock.ExpectQuery(`FROM gormlock_fence .* FOR SHARE$`).WillReturnRows(sqlmock.NewRows([]string{"token"}).AddRow(number))
		}
	}
	changesNone := func(number int64) func(*stage) {
		return func(s *stage) {
			gormlocktest.ExpectFencedUpdate(s.mock, "reports", "fence").WillReturnResult(sqlmock.NewResult(0, 0))
			gormlocktest.ExpectFenced(s.mock, "reports", number)
		}
	}
	fenceTx := func(s *stage) error {
		return s.db.Transaction(func(tx *gorm.DB) error { return gormlock.FenceTx(tx, token) })
	}
	for name, c := range map[string]scene{
		"an update": {
			expect: func(s *stage) { gormlocktest.ExpectFencedUpdate(s.mock, "reports", "fence") },
			do:     update,
		},
		"an update that is superseded": {
			expect: changesNone(8),
			real:   func(s *stage) { issued(s, 8); s.exec("DELETE FROM reports") },
			do:     update,
			want:   gormlock.ErrFenced,
		},
		"an update of a row that is gone": {
			expect: changesNone(7),
			real:   func(s *stage) { issued(s, 7); s.exec("DELETE FROM reports") },
			do:     update,
		},
		"FenceTx": {
			expect: latest(7),
			real:   func(s *stage) { issued(s, 7) },
			do:     fenceTx,
		},
		"FenceTx, superseded": {
			expect: latest(8),
			real:   func(s *stage) { issued(s, 8) },
			do:     fenceTx,
			want:   gormlock.ErrFenced,
		},
		"FenceFor": {
			expect: func(s *stage) {
				gormlocktest.ExpectAcquire(s, s.mock, s.keys[:1])
				s.mock.ExpectQuery(`INSERT INTO gormlock_fence .* RETURNING token$`).WillReturnRows(sqlmock.NewRows([]string{"token"}).AddRow(8))
			},
			do: func(s *stage) error {
				return s.db.Transaction(func(tx *gorm.DB) error {
					_, err := gormlock.FenceFor(tx, s.keys[0])
					return err
				})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.inTransactionOfGORM().play(t)
		})
	}
}

// farTask is a table in a schema of its own.
type farTask task

func (farTask) TableName() string { return "gormlocktest_tasks.tasks" }

// TestClaims: what is expected of a claim is what gormlock sends.
func TestClaims(t *testing.T) {
	t.Parallel()
	rows := [][]driver.Value{{int64(9), "running"}, {int64(3), "running"}}
	seed := func(s *stage) { s.exec("INSERT INTO tasks VALUES (3, 'ready'), (9, 'ready')") }
	far := func(s *stage) {
		s.exec(`DROP SCHEMA IF EXISTS gormlocktest_tasks CASCADE; CREATE SCHEMA gormlocktest_tasks;
			CREATE TABLE gormlocktest_tasks.tasks (LIKE tasks INCLUDING ALL);
			INSERT INTO gormlocktest_tasks.tasks VALUES (3, 'ready'), (9, 'ready')`)
	}
	columns := []string{"id", "state"}
	for name, c := range map[string]scene{
		"a few": {
			expect: func(s *stage) { gormlocktest.ExpectClaim(s.mock, "tasks", columns, rows...) },
			real:   seed,
			do:     func(s *stage) error { return claimTasks[task](s, 2) },
		},
		"many": {
			expect: func(s *stage) { gormlocktest.ExpectClaim(s.mock, "tasks", columns, rows...) },
			real:   seed,
			do:     func(s *stage) error { return claimTasks[task](s, 1000) },
		},
		"of a table in a schema": {
			expect: func(s *stage) {
				gormlocktest.ExpectClaim(s.mock, "gormlocktest_tasks.tasks", columns, rows[0])
				gormlocktest.ExpectClaim(s.mock, "gormlocktest_tasks.tasks", columns, rows[1])
			},
			real: far,
			do: func(s *stage) error {
				for _, limit := range []int{1, 1000} {
					if _, err := gormlock.Claim[farTask](s.db, limit, running, ready); err != nil {
						return err
					}
				}
				return nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.play(t)
		})
	}
}

var running = map[string]any{"state": "running"}

func ready(q *gorm.DB) *gorm.DB { return q.Where("state = 'ready'").Order("id DESC") }

func claimTasks[T task](s *stage, limit int) error {
	tasks, err := gormlock.Claim[T](s.db, limit, running, ready)
	if err == nil && (len(tasks) != 2 || task(tasks[0]) != task{9, "running"} || task(tasks[1]).ID != 3) {
		err = fmt.Errorf("claimed %v", tasks)
	}
	return err
}
