package versions_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type diary struct {
	ID   int64
	Line string
}

type hooked struct {
	ID      int64
	Name    string
	Mode    string `gorm:"-"` // what BeforeUpdate does
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

func (h *hooked) BeforeUpdate(tx *gorm.DB) error {
	fresh := tx.Session(&gorm.Session{NewDB: true})
	switch h.Mode {
	case "writes":
		return fresh.Create(&diary{Line: h.Name}).Error
	case "writes raw":
		return fresh.Exec("INSERT INTO diaries (line) VALUES ('raw')").Error
	case "reads":
		return fresh.Find(&[]diary{}).Error
	}
	return nil
}

// V5, V27: what a hook stored before a stale row is not committed though the caller drops the error; a hook that stored
// nothing leaves the transaction usable.
func TestV27_WhatAHookStoredBeforeAStaleRow(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&diary{}, &hooked{}})
	h := stand.Made(t, db, hooked{Name: "a"})
	stale := h
	stand.Must(t, db.Model(&h).Update("name", "b").Error)
	for mode, stays := range map[string]bool{"writes": false, "writes raw": false, "reads": true, "nothing": true} {
		old := stale
		old.Mode = mode
		err := db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, tx.Create(&diary{Line: mode}).Error)
			stand.MustStale(t, tx.Model(&old).Update("name", "c").Error)
			return nil // the error is dropped
		})
		var n int64
		stand.Must(t, db.Model(&diary{}).Where("line = ?", mode).Count(&n).Error)
		stand.Equal(t, mode+": committed", n == 1, stays)
		stand.Equal(t, mode+": an error", err == nil, stays)
	}
	var n int64
	stand.Must(t, db.Model(&diary{}).Where("line IN ('c', 'raw', 'b')").Count(&n).Error)
	stand.Equal(t, "what hooks wrote", n, 0)
}
