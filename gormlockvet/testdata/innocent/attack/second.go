package attack

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing/fstest"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lease"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// Tx is the interface of those who run statements.
type Tx interface {
	Create(value any) *gorm.DB
	First(dest any, conds ...any) *gorm.DB
}

func insert(tx Tx, s *Seat) error { return tx.Create(s).Error }

func (o *Office) Interface(s *Seat) error {
	return o.db.Transaction(func(tx *gorm.DB) error { return insert(tx, s) })
}

// Provider gives the db of a ctx.
type Provider struct{ root *gorm.DB }

func (p *Provider) DB(ctx context.Context) *gorm.DB {
	if tx, ok := ctx.Value(p).(*gorm.DB); ok {
		return tx
	}
	return p.root.WithContext(ctx)
}

func (p *Provider) Tx(ctx context.Context, fn func(ctx context.Context) error) error {
	return p.DB(ctx).Transaction(func(tx *gorm.DB) error { return fn(context.WithValue(ctx, p, tx)) })
}

type Store struct{ p *Provider }

func (s *Store) Save(ctx context.Context, seat *Seat) error { return s.p.DB(ctx).Save(seat).Error }

func (s *Store) Both(ctx context.Context, a, b *Seat) error {
	return s.p.Tx(ctx, func(ctx context.Context) error {
		return errors.Join(s.Save(ctx, a), s.Save(ctx, b))
	})
}

// Prepared in the transaction's name, run by it.
func (o *Office) Prepared(ids []uint) error {
	base := o.db.Session(&gorm.Session{DryRun: true})
	text := base.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Find(&[]Seat{}, ids) })
	return o.db.Transaction(func(tx *gorm.DB) error {
		name := o.db.NamingStrategy.TableName("seat")
		if o.db.Dialector.Name() != "postgres" || !o.db.Migrator().HasTable(name) {
			return errors.New("no " + text)
		}
		s, err := schema.Parse(&Seat{}, nil, o.db.NamingStrategy)
		_ = s
		return err
	})
}

// A counter for metrics, a logger, a buffer that is reset.
func (o *Office) Metrics(ctx context.Context, retries *atomic.Int64) error {
	var b strings.Builder
	return gormlock.Transaction(o.db.WithContext(ctx), func(tx *gorm.DB) error {
		retries.Add(1)
		b.Reset()
		fmt.Fprintf(&b, "%d", retries.Load())
		b.WriteString("!")
		return tx.Create(&Message{Text: b.String()}).Error
	}, gormlock.Attempts(4))
}

// Results are made anew in each run, and kept by assignment.
func (o *Office) Results(ctx context.Context) (byShow map[string][]Seat, n int, err error) {
	err = gormlock.Transaction(o.db, func(tx *gorm.DB) error {
		byShow, n = map[string][]Seat{}, 0
		rows, err := tx.Model(&Seat{}).Rows()
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var s Seat
			if err := tx.ScanRows(rows, &s); err != nil {
				return err
			}
			byShow[s.Show] = append(byShow[s.Show], s)
			n++
		}
		return rows.Err()
	}, gormlock.Attempts(3), gormlock.ReadOnly())
	return byShow, n, err
}

// The response is read before, and written after.
func (o *Office) Handler(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "no body", http.StatusBadRequest)
		return
	}
	var made Message
	err = gormlock.Transaction(o.db.WithContext(r.Context()), func(tx *gorm.DB) error {
		made = Message{Text: string(body)}
		if r.Header.Get("X") != "" {
			w := new(strings.Builder)
			w.WriteString("own")
			made.Text = w.String()
		}
		return tx.Create(&made).Error
	}, gormlock.Attempts(3), gormlock.Locking(gormlock.Key("messages")))
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	fmt.Fprintln(w, made.ID)
}

// A channel that never waits: a buffered semaphore is somebody else's, a default is here.
func (o *Office) Channels(wake chan struct{}) error {
	return gormlock.Transaction(o.db, func(tx *gorm.DB) error {
		select {
		case wake <- struct{}{}:
		default:
		}
		done := make(chan struct{})
		close(done)
		return tx.Create(&Message{}).Error
	}, gormlock.Locking(gormlock.Key("wake")))
}

// The lock belongs to a job of its own, the read to another row's columns.
func (o *Office) Only(ctx context.Context, id uint) error {
	var seat Seat
	if err := o.db.First(&seat, id).Error; err != nil {
		return err
	}
	return gormlock.Transaction(o.db.WithContext(ctx), func(tx *gorm.DB) error {
		if err := tx.Model(&Seat{}).Where("id = ?", seat.ID).Update("holder", "me").Error; err != nil {
			return err
		}
		return tx.Model(&seat).Update("price", gorm.Expr("price + ?", 10)).Error
	}, gormlock.Locking(gormlock.Key("seat", id)))
}

// Errors of a hook go to the statement.
func (s *Seat) AfterSave(tx *gorm.DB) error {
	return tx.Session(&gorm.Session{NewDB: true}).Create(&Message{Text: s.Show}).Error
}

// A savepoint by hand.
func (o *Office) Savepoint(tx *gorm.DB) error {
	tx.SavePoint("a")
	if err := tx.Create(&Message{}).Error; err != nil {
		tx.RollbackTo("a")
	}
	return tx.Error
}

// A scope that does many things.
func (o *Office) Scope(lock bool) func(*gorm.DB) *gorm.DB {
	return func(q *gorm.DB) *gorm.DB {
		if lock {
			q = q.Scopes(gormlock.WithRowLock(gormlock.ForUpdate))
		}
		return q.Order("id")
	}
}

func (o *Office) Scoped(tx *gorm.DB, seats *[]Seat) error {
	return tx.Scopes(o.Scope(true)).Find(seats).Error
}

// Upserts by text that move the version.
func (o *Office) Text(ctx context.Context) error {
	const upsert = `INSERT INTO seats (id, price, version) VALUES (?, ?, 1)
		ON CONFLICT (id) DO UPDATE SET price = excluded.price, version = seats.version + 1`
	return o.db.WithContext(ctx).Exec(upsert, 1, 2).Error
}

// A lease whose renewal is watched, and files that only exist in memory.
func (o *Office) Lease(ctx context.Context, leases *lease.Manager) error {
	l, err := leases.Acquire(ctx, gormlock.Key("files"), time.Minute)
	if err != nil {
		return err
	}
	defer func() { _ = l.Release(context.WithoutCancel(ctx)) }()
	held, stop := l.Bind(ctx)
	defer stop()
	files := fstest.MapFS{}
	return gormlock.Transaction(o.db.WithContext(held), func(tx *gorm.DB) error {
		if _, err := files.ReadFile("a"); err != nil {
			return err
		}
		return tx.Clauses(clause.Returning{}).Create(&Message{}).Error
	}, gormlock.Attempts(3), gormlock.Isolation(sql.LevelSerializable))
}
