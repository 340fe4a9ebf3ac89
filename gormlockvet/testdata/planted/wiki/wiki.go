// Package wiki has a global db, as many programs do.
package wiki

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lockkey"
	"gorm.io/gorm"
)

var DB *gorm.DB

type Page struct {
	ID      uint
	Title   string
	Body    string
	Views   int   `gormlock:"unversionned"`             // misuse: tags
	Version int64 `gormlock:"version,initial=1,strict"` // misuse: tags
}

func (Page) TableName() string { return "wiki.pages" }

type Revision struct {
	ID     uint
	PageID uint
	Body   string
}

func Edit(id uint, body string) error {
	return DB.Transaction(func(tx *gorm.DB) error {
		var page Page
		if err := DB.First(&page, id).Error; err != nil { // misuse: outer
			return err
		}
		if err := keep(page); err != nil { // misuse: outer
			return err
		}
		page.Body = body
		return tx.Save(&page).Error
	})
}

func keep(p Page) error { return DB.Create(&Revision{PageID: p.ID, Body: p.Body}).Error }

func View(id uint) {
	DB.Exec("UPDATE wiki.pages SET body = body || ' ' WHERE id = ?", id) // misuse: around
}

func Rename(id uint, title string) error {
	return DB.Table("wiki.pages").Where("id = ?", id).Updates(map[string]interface{}{"title": title}).Error // misuse: around
}

func Move(from, to string) error {
	sql := fmt.Sprintf("UPDATE wiki.pages SET title = '%s' WHERE title = '%s'", to, from)
	return DB.Exec(sql).Error // misuse: around
}

func Merge(a, b uint) (text string, err error) {
	var out bytes.Buffer
	err = gormlock.Transaction(DB, func(tx *gorm.DB) error {
		var pages []Page
		if err := tx.Find(&pages, []uint{a, b}).Error; err != nil {
			return err
		}
		for _, p := range pages {
			out.WriteString(p.Body) // misuse: retried
		}
		return tx.Delete(&Page{}, b).Error
	}, gormlock.Attempts(2))
	return out.String(), err
}

func Lock(id uint) error {
	tx := DB.Begin()
	if err := gormlock.AcquireXactLock(tx, []lockkey.Key{gormlock.Key("page", id)}); err != nil {
		tx.Rollback()
		return err
	}
	for range 3 {
		time.Sleep(100 * time.Millisecond) // misuse: held
	}
	return tx.Commit().Error
}

func Publish(id uint) error {
	page, err := Load(id)
	if err != nil {
		return err
	}
	return DB.Transaction(func(tx *gorm.DB) error {
		if err := gormlock.AcquireXactLock(tx, []lockkey.Key{gormlock.Key("page", id)}, gormlock.Timeout(time.Second)); err != nil {
			return err
		}
		return tx.Model(&Page{}).Where("id = ?", id).Update("body", page.Body+"\n(published)").Error // misuse: old
	})
}

func Load(id uint) (*Page, error) {
	page := &Page{}
	if err := DB.Take(page, id).Error; errors.Is(err, gorm.ErrRecordNotFound) {
		return nil, errors.New("no such page")
	} else if err != nil {
		return nil, err
	}
	return page, nil
}

func Stale() *gorm.DB {
	return DB.Where(DB.Clauses(gormlock.ExpectVersion(3)).Where("views > 0")) // misuse: dropped
}

func Popular() (pages []Page, err error) {
	locked := DB.Scopes(gormlock.WithSkipLocked()).Raw("SELECT id FROM wiki.pages ORDER BY views DESC LIMIT 10") // misuse: dropped
	err = DB.Where("id IN (?)", locked).Find(&pages).Error
	return pages, err
}

func Purge() error {
	return DB.Exec("DELETE FROM wiki.pages WHERE title = ''").Error // misuse: around
}
