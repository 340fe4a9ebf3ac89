// Package market does by habits of its own what is right.
package market

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lease"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

type Stall struct {
	gorm.Model
	Name    string
	Rent    int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type Note struct {
	ID   uint
	Text string
}

type Market struct {
	db     *gorm.DB
	client *http.Client
	leases *lease.Manager
	after  []func()
}

// What runs after the commit has the outer db, and may.
func (m *Market) AfterCommit(ctx context.Context, stall *Stall) error {
	var after []func() error
	err := m.db.Transaction(func(tx *gorm.DB) error {
		after = append(after, func() error { return m.db.Create(&Note{Text: "saved"}).Error })
		return tx.Save(stall).Error
	})
	for _, fn := range after {
		err = errors.Join(err, fn())
	}
	return err
}

// Errors that are looked at in other ways.
func (m *Market) Errors(a, b *Stall) (int64, error) {
	if res := m.db.Save(a); res.Error != nil {
		return 0, res.Error
	} else if res.RowsAffected == 0 {
		return 0, gorm.ErrRecordNotFound
	}
	if err := errors.Join(m.db.Save(a).Error, m.db.Save(b).Error); err != nil {
		return 0, err
	}
	tx := m.db.Save(a)
	if tx.Error == nil {
		tx = m.db.Save(b)
	}
	must(m.db.Save(a))
	result := m.db.Model(a).Update("rent", 3)
	return result.RowsAffected, errors.Join(tx.Error, result.Error)
}

func must(db *gorm.DB) {
	if db.Error != nil {
		panic(db.Error)
	}
}

// The outer db says what it is.
func (m *Market) About(id uint) error {
	return m.db.Transaction(func(tx *gorm.DB) error {
		if m.db.Dialector.Name() == "sqlite" || m.db.DryRun {
			return nil
		}
		m.db.Logger.Info(context.Background(), "renting")
		name := m.db.NamingStrategy.TableName("Stall")
		text := m.db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Find(&[]Stall{}) })
		cheap := m.db.Model(&Stall{}).Select("id").Where("rent < 3")
		return tx.Where("id IN (?)", cheap).Where("note <> ? AND name <> ?", text, name).Delete(&Note{}).Error
	})
}

// Read again under the lock.
func (m *Market) Fresh(ctx context.Context, id uint) error {
	var stall Stall
	if err := m.db.First(&stall, id).Error; err != nil {
		return err
	}
	if stall.Rent == 0 {
		return nil
	}
	return gormlock.Transaction(m.db.WithContext(ctx), func(tx *gorm.DB) error {
		var fresh Stall
		if err := tx.First(&fresh, stall.ID).Error; err != nil {
			return err
		}
		fresh.Rent++
		return tx.Save(&fresh).Error
	}, gormlock.Locking(gormlock.Key("stall", id)))
}

// By expressions, of a struct that was read before: nothing of it is written.
func (m *Market) ByKey(ctx context.Context, id uint) error {
	var stall Stall
	if err := m.db.First(&stall, id).Error; err != nil {
		return err
	}
	return gormlock.Transaction(m.db.WithContext(ctx), func(tx *gorm.DB) error {
		return tx.Model(&Stall{}).Where("id = ?", stall.ID).Update("rent", gorm.Expr("rent + 1")).Error
	}, gormlock.Locking(gormlock.Key("stall", id)))
}

// Each attempt begins anew.
func (m *Market) Retried(ctx context.Context, out *[]Stall) (n int, err error) {
	var names strings.Builder
	err = gormlock.Transaction(m.db, func(tx *gorm.DB) error {
		names.Reset()
		n = 0
		var stalls []Stall
		if err := tx.Find(&stalls).Error; err != nil {
			return err
		}
		var kept []Stall
		for _, s := range stalls {
			kept = append(kept, s)
			names.WriteString(s.Name)
			n++
		}
		*out = kept
		return nil
	}, gormlock.Attempts(3), gormlock.Isolation(4))
	return n + names.Len(), err
}

// The request is made before, or after.
func (m *Market) Charge(ctx context.Context, id uint) error {
	resp, err := m.client.Get("https://bank.example")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	err = m.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		var stall Stall
		if err := tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&stall, id).Error; err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		return tx.Model(&stall).Update("rent", resp.ContentLength).Error
	})
	if err != nil {
		return err
	}
	time.Sleep(time.Millisecond)
	_, err = m.client.Get("https://bank.example/done")
	return err
}

// Texts that write other tables, or none.
func (m *Market) Texts(ctx context.Context) error {
	var n int64
	return errors.Join(
		m.db.Raw("SELECT count(*) FROM stalls FOR UPDATE").Scan(&n).Error,
		m.db.Exec("INSERT INTO notes (text) SELECT name FROM stalls -- UPDATE stalls").Error,
		m.db.Exec("UPDATE notes SET text = s.name FROM stalls s WHERE s.id = notes.id").Error,
		m.db.Exec("UPDATE notes SET text = 'UPDATE stalls SET rent = 0'").Error,
		m.db.Exec("UPDATE stalls SET rent = rent + 1, version = version + 1").Error,
		m.db.Exec("LOCK TABLE stalls IN SHARE MODE").Error,
		m.db.Exec("DELETE FROM notes USING stalls WHERE stalls.id = notes.id").Error,
		m.db.Exec("TRUNCATE notes").Error,
		m.db.Table("stalls AS s").Joins("JOIN notes n ON n.id = s.id").Count(&n).Error,
		m.db.Table("stalls").Select("rent").Where("id = 1").Scan(&n).Error,
	)
}

// The outer ctx is read for what does not end, or ends what is done beside.
func (m *Market) Lead(ctx context.Context) error {
	return m.leases.Lead(ctx, gormlock.Key("market"), time.Minute, func(led context.Context) error {
		user, _ := ctx.Value("user").(string)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-led.Done():
				return nil
			case <-ctx.Done():
				return ctx.Err()
			case <-ticker.C:
				if err := m.db.WithContext(led).Create(&Note{Text: user}).Error; err != nil {
					return fmt.Errorf("leading: %w", err)
				}
			}
		}
	})
}

// A transaction that may be there already.
func (m *Market) In(ctx context.Context, tx *gorm.DB, stall *Stall) error {
	if tx == nil {
		return m.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return m.In(ctx, tx, stall) })
	}
	return tx.Save(stall).Error
}
