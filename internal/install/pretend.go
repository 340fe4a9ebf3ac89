package install

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/pretend"
)

// pretended lets locks in memory be one of the plugins of a database, so every session of it has them.
type pretended struct{ *pretend.Locks }

const pretendedEntry = "gormlock pretended locks"

// Name implements [gorm.Plugin], as does Initialize.
func (pretended) Name() string { return pretendedEntry }

// Initialize has nothing to do.
func (pretended) Initialize(*gorm.DB) error { return nil }

// Pretend makes db use these locks instead of the server's.
func Pretend(db *gorm.DB, locks *pretend.Locks) { db.Plugins[pretendedEntry] = pretended{locks} }

// Pretended returns the locks in memory that a test gave db, or nil.
func Pretended(db *gorm.DB) *pretend.Locks {
	p, _ := db.Plugins[pretendedEntry].(pretended)
	return p.Locks
}
