package compat_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
)

var transactions = []operation{
	{"transaction", func(p *play) {
		p.tell(p.db.Transaction(func(tx *gorm.DB) error {
			x := person{Name: "eve"}
			p.ran(tx.Create(&x), x)
			p.ran(tx.First(&x, x.ID), x)
			return tx.Model(&x).Update("age", 1).Error
		}))
	}},
	{"transaction that is rolled back", func(p *play) {
		x := person{Name: "eve"}
		p.tell(p.db.Transaction(func(tx *gorm.DB) error {
			p.ran(tx.Create(&x), x)
			return errRefused
		}), x)
	}},
	{"transaction of a model with hooks that is rolled back", func(p *play) {
		x := diary{Text: "eve"}
		p.tell(p.db.Transaction(func(tx *gorm.DB) error {
			p.ran(tx.Create(&x), x)
			x.Text = "b"
			p.ran(tx.Save(&x), x)
			return errRefused
		}), x)
	}},
	{"transaction that panics", func(p *play) {
		defer func() { p.tell("panicked", fmt.Sprint(recover())) }()
		_ = p.db.Transaction(func(tx *gorm.DB) error {
			p.ran(tx.Create(&person{Name: "eve"}))
			panic("out")
		})
	}},
	{"transaction with options", func(p *play) {
		for _, opts := range []*sql.TxOptions{
			nil, {}, {Isolation: sql.LevelSerializable}, {Isolation: sql.LevelRepeatableRead, ReadOnly: true}, {ReadOnly: true},
			{Isolation: sql.LevelReadUncommitted}, {Isolation: sql.LevelReadCommitted},
		} {
			p.tell(p.db.Transaction(func(tx *gorm.DB) error {
				var level, readOnly string
				p.ran(tx.Raw("SHOW transaction_isolation").Scan(&level), level)
				p.ran(tx.Raw("SHOW transaction_read_only").Scan(&readOnly), readOnly)
				return tx.Model(&person{ID: 1}).Update("age", 1).Error
			}, opts))
		}
	}},
	{"transaction with an isolation level there is not", func(p *play) {
		p.tell(p.db.Transaction(func(*gorm.DB) error { return nil }, &sql.TxOptions{Isolation: sql.LevelLinearizable}))
	}},
	{"nested transactions", func(p *play) {
		p.tell(p.db.Transaction(func(tx *gorm.DB) error {
			p.ran(tx.Create(&person{Name: "outer"}))
			p.tell(tx.Transaction(func(tx *gorm.DB) error {
				p.ran(tx.Create(&person{Name: "lost"}))
				return errRefused
			}))
			p.tell(tx.Transaction(func(tx *gorm.DB) error {
				p.ran(tx.Create(&diary{Text: "inner"}))
				return tx.Transaction(func(tx *gorm.DB) error { return tx.Create(&person{Name: "deep"}).Error })
			}))
			return nil
		}))
	}},
	{"nested transactions switched off", func(p *play) {
		p.tell(p.db.Session(&gorm.Session{DisableNestedTransaction: true}).Transaction(func(tx *gorm.DB) error {
			p.tell(tx.Transaction(func(tx *gorm.DB) error {
				p.ran(tx.Create(&person{Name: "kept"}))
				return errRefused
			}))
			return nil
		}))
	}},
	{"an error in a nested transaction", func(p *play) {
		p.tell(p.db.Transaction(func(tx *gorm.DB) error {
			p.tell(tx.Transaction(func(tx *gorm.DB) error {
				return tx.Create(&person{Name: "x", Email: pointer("ada@example.org")}).Error
			}))
			return tx.Create(&person{Name: "after"}).Error
		}))
	}},
	{"savepoints", func(p *play) {
		tx := p.db.Begin()
		p.ran(tx.Create(&person{Name: "a"}))
		p.ran(tx.SavePoint("sp1"))
		p.ran(tx.Create(&person{Name: "b"}))
		p.ran(tx.SavePoint("sp2"))
		p.ran(tx.Create(&person{Name: "c"}))
		p.ran(tx.RollbackTo("sp2"))
		p.ran(tx.RollbackTo("sp1"))
		p.ran(tx.RollbackTo("sp1"))
		p.ran(tx.Create(&person{Name: "d"}))
		p.ran(tx.Exec("RELEASE SAVEPOINT sp1"))
		p.ran(tx.Commit())
	}},
	{"a savepoint there is not", func(p *play) {
		tx := p.db.Begin()
		p.ran(tx.RollbackTo("never"))
		p.ran(tx.Rollback())
	}},
	{"begin, commit, rollback", func(p *play) {
		tx := p.db.Begin()
		p.ran(tx.Create(&person{Name: "a"}))
		p.ran(tx.Commit())
		tx = p.db.Begin(&sql.TxOptions{ReadOnly: true})
		p.ran(tx.Create(&person{Name: "b"}))
		p.ran(tx.Rollback())
	}},
	{"commit and rollback once more", func(p *play) {
		tx := p.db.Begin()
		p.ran(tx.Commit())
		p.ran(tx.Commit())
		p.ran(tx.Rollback())
		p.ran(tx.Create(&person{Name: "late"}))
		tx = p.db.Begin()
		p.ran(tx.Rollback())
		p.ran(tx.Rollback())
		p.ran(tx.Commit())
	}},
	{"commit of what has failed", func(p *play) {
		tx := p.db.Begin()
		p.ran(tx.Create(&person{Name: "lost"}))
		p.tell(tx.Exec("SELECT 1/0").Error)
		p.tell(tx.Session(&gorm.Session{NewDB: true}).Exec("SELECT ?::int", 1).Error)
		p.ran(tx.Session(&gorm.Session{NewDB: true}).Commit())
	}},
	{"commit that a deferred constraint refuses", func(p *play) {
		p.tell(p.db.Transaction(func(tx *gorm.DB) error {
			p.ran(tx.Exec("CREATE TEMP TABLE later (n int UNIQUE DEFERRABLE INITIALLY DEFERRED) ON COMMIT DROP"))
			return tx.Exec("INSERT INTO later VALUES (?), (?)", 1, 1).Error
		}))
	}},
	{"begin outside of a transaction", func(p *play) {
		p.ran(p.db.Session(&gorm.Session{}).Commit())
		p.ran(p.db.Session(&gorm.Session{}).Rollback())
	}},
	{"a prepared session in a transaction", func(p *play) {
		p.tell(p.db.Transaction(func(tx *gorm.DB) error {
			fresh := tx.Session(&gorm.Session{NewDB: true, PrepareStmt: true})
			p.ran(fresh.Create(&person{Name: "a"}))
			p.ran(fresh.Model(&person{}).Where("name = ?", "a").Update("age", 2))
			p.ran(tx.Session(&gorm.Session{SkipDefaultTransaction: true}).Create(&person{Name: "b"}))
			return nil
		}))
	}},
	{"a prepared statement on the *sql.Tx of a transaction", func(p *play) {
		p.tell(p.db.Transaction(func(tx *gorm.DB) error {
			pool := tx.Statement.ConnPool
			if prepared, ok := pool.(*gorm.PreparedStmtTX); ok {
				pool = prepared.Tx
			}
			plain, ok := pool.(*sql.Tx)
			p.tell(ok)
			if !ok {
				return nil
			}
			result, err := plain.ExecContext(p.ctx, "UPDATE people SET age = age + $1 WHERE id < $2", 1, 3)
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			p.tell(n, err)
			_, err = result.LastInsertId()
			p.tell(err)
			stmt, err := plain.PrepareContext(p.ctx, "SELECT name FROM people WHERE id = $1")
			if err != nil {
				return err
			}
			defer stmt.Close()
			for id := range 3 {
				var name string
				p.tell(stmt.QueryRowContext(p.ctx, id).Scan(&name), name)
			}
			return nil
		}))
	}},
	{"a transaction of the application's *sql.DB", func(p *play) {
		pool, err := p.db.DB()
		if err != nil {
			p.tell(err)
			return
		}
		plain, err := pool.BeginTx(p.ctx, nil)
		if err != nil {
			p.tell(err)
			return
		}
		tx := p.db.Session(&gorm.Session{NewDB: true, Context: p.ctx})
		tx.Statement.ConnPool = plain
		p.ran(tx.Create(&person{Name: "in"}))
		p.ran(tx.Model(&diary{ID: 1}).Update("text", "in"))
		p.tell(plain.Rollback())
	}},
	{"one connection", func(p *play) {
		p.tell(p.db.Connection(func(tx *gorm.DB) error {
			tx = tx.Session(&gorm.Session{NewDB: true}) // one for many statements
			var x string
			p.ran(tx.Exec("SET application_name = 'mine'"))
			p.ran(tx.Raw("SHOW application_name").Scan(&x), x)
			p.ran(tx.Create(&diary{Text: "c"}))
			p.tell(tx.Transaction(func(tx *gorm.DB) error {
				p.ran(tx.Create(&person{Name: "c"}))
				return errRefused
			}))
			p.ran(tx.Exec("RESET application_name"))
			return nil
		}))
	}},
	{"rows in a transaction", func(p *play) {
		p.tell(p.db.Transaction(func(tx *gorm.DB) error {
			rows, err := tx.Model(&person{}).Select("id", "name", "score", "created_at", "active").Order("id").Rows()
			p.rows(rows, err)
			rows, err = tx.Raw("SELECT n, repeat('x', 1000) FROM generate_series(1, 3000) n").Rows()
			if err != nil {
				return err
			}
			rows.Next()
			p.tell(rows.Close())
			return tx.Create(&person{Name: "after"}).Error
		}))
	}},
	{"two results in a transaction", func(p *play) {
		if p.simple { // the extended protocol has one result
			p.tell(p.db.Transaction(func(tx *gorm.DB) error {
				rows, err := tx.Raw("SELECT 1 AS a; SELECT 2 AS b, 3 AS c").Rows()
				p.rows(rows, err)
				return nil
			}))
		}
	}},
	{"a failed statement in a transaction", func(p *play) {
		p.tell(p.db.Transaction(func(tx *gorm.DB) error {
			rows, err := tx.Raw("SELECT 10 / (3 - n) FROM generate_series(1, 5) n").Rows()
			p.rows(rows, err)
			var x person
			p.ran(tx.First(&x, 1))
			return nil
		}))
	}},
}

// ends are operations that end behind the back of GORM: what is sent then, and when, is a matter of chance.
var ends = []operation{
	{"a context that has ended", func(p *play) {
		ctx, cancel := context.WithCancel(p.ctx)
		cancel()
		db := p.db.WithContext(ctx)
		p.ran(db.Create(&person{Name: "x"}))
		p.ran(db.First(&person{}))
		p.tell(db.Transaction(func(*gorm.DB) error { return nil }))
		p.ran(db.Create(&diary{Text: "x"}))
	}},
	{"a context that ends during a statement", func(p *play) {
		ctx, cancel := context.WithTimeout(p.ctx, 30*time.Millisecond)
		defer cancel()
		err := p.db.WithContext(ctx).Exec("SELECT pg_sleep(60)").Error
		p.tell(errors.Is(err, context.DeadlineExceeded))
	}},
	{"a context that ends during a transaction", func(p *play) {
		ctx, cancel := context.WithCancel(p.ctx)
		defer cancel()
		err := p.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			if err := tx.Create(&person{Name: "lost"}).Error; err != nil {
				return err
			}
			cancel()
			return nil
		})
		p.tell(err != nil)
	}},
	{"a context that ends during a statement of a transaction", func(p *play) {
		ctx, cancel := context.WithTimeout(p.ctx, 100*time.Millisecond)
		defer cancel()
		err := p.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			if err := tx.Create(&diary{Text: "lost"}).Error; err != nil {
				return err
			}
			return tx.Exec("SELECT pg_sleep(60)").Error
		})
		p.tell(errors.Is(err, context.DeadlineExceeded))
	}},
	{"a backend that is ended", func(p *play) {
		err := p.db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Create(&person{Name: "lost"}).Error; err != nil {
				return err
			}
			return tx.Exec("SELECT pg_terminate_backend(pg_backend_pid())").Error
		})
		p.tell(err != nil)
		p.ran(p.db.First(&person{}))
	}},
	{"a statement beside open rows in a transaction", func(p *play) {
		err := p.db.Transaction(func(tx *gorm.DB) error {
			rows, err := tx.Raw("SELECT repeat('x', 10000) FROM generate_series(1, 3000) n").Rows()
			if err != nil {
				return err
			}
			defer rows.Close()
			rows.Next()
			return tx.Session(&gorm.Session{NewDB: true}).Create(&person{Name: "beside"}).Error
		})
		p.tell(err != nil)
	}},
}
