package install

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/pretend"
)

// pretended lets locks in memory stand among the plugins of a database: every session of it has them.
type pretended struct{ *pretend.Locks }

const pretendedEntry = "gormlock pretended locks"

// Name implements [gorm.Plugin], as does Initialize.
func (pretended) Name() string { return pretendedEntry }

// Initialize has nothing to do.
func (pretended) Initialize(*gorm.DB) error { return nil }

// Pretend makes these locks those of db, in the place of the server's.
func Pretend(db *gorm.DB, locks *pretend.Locks) { db.Plugins[pretendedEntry] = pretended{locks} }

// Pretended are the locks in memory that a test gave db, nil: none.
func Pretended(db *gorm.DB) *pretend.Locks {
	p, _ := db.Plugins[pretendedEntry].(pretended)
	return p.Locks
}
