// Package blog has no locks at all, only GORM.
package blog

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"sync"
	"time"

	"gorm.io/gorm"
)

type Post struct {
	gorm.Model
	Title   string
	Version int   `json:"version"`
	Tags    []Tag `gorm:"many2many:post_tags"`
}

type Tag struct {
	ID   uint
	Name string `gorm:"uniqueIndex" lock:"none"`
}

type Blog struct {
	DB    *gorm.DB
	mu    sync.Mutex
	count int
}

func (b *Blog) Create(w http.ResponseWriter, r *http.Request) {
	var p Post
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.DB.Create(&p)
	b.DB.Model(&p).UpdateColumn("version", gorm.Expr("version + 1"))
	_ = json.NewEncoder(w).Encode(p)
}

func (b *Blog) Publish(ids []uint) error {
	var out bytes.Buffer
	err := b.DB.Transaction(func(tx *gorm.DB) error {
		for _, id := range ids {
			var p Post
			if err := tx.First(&p, id).Error; err != nil {
				return err
			}
			out.WriteString(p.Title)
			b.count++
			if err := os.WriteFile("post", out.Bytes(), 0o600); err != nil {
				return err
			}
			if _, err := http.Get("http://localhost/ping"); err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
			if err := tx.Save(&p).Error; err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

func (b *Blog) Rename(id uint, title string) {
	b.DB.Exec("UPDATE posts SET title = ? WHERE id = ?", title, id)
	b.DB.Table("posts").Where("id = ?", id).Update("title", title)
}

func (b *Blog) Copy(id uint) error {
	var p Post
	if err := b.DB.Select("id", "title").First(&p, id).Error; err != nil {
		return err
	}
	return b.DB.Save(&p).Error
}

func (b *Blog) Paged(page int) (posts []Post, total int64, err error) {
	q := b.DB.Model(&Post{})
	if page > 0 {
		q = q.Offset(page * 10)
	}
	if err := q.Count(&total).Error; err != nil {
		return nil, 0, err
	}
	err = q.Limit(10).Find(&posts).Error
	return posts, total, err
}

func (b *Blog) Nested(p *Post) error {
	return b.DB.Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(p).Error; err != nil {
			return err
		}
		return tx.Transaction(func(inner *gorm.DB) error {
			return inner.Model(p).Association("Tags").Append(&Tag{Name: "new"})
		})
	})
}
