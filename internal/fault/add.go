package fault

import (
	"errors"
	"strings"

	"gorm.io/gorm"
)

// Add adds err to the statement so that errors.Is finds it to the end: GORM drops an earlier error from the chain when
// a later one joins it, for example that of the rollback.
func Add(db *gorm.DB, err error) {
	_ = db.AddError(err)
	db.Statement.Settings.Store(added{}, err)
	Added(db, err)
}

// Added is called with each error that Add adds.
var Added = func(*gorm.DB, error) {}

type added struct{}

// IsAdded reports whether Add has added an error to the statement.
func IsAdded(stmt *gorm.Statement) bool {
	_, is := stmt.Settings.Load(added{})
	return is
}

// Mend puts the error that Add added back into the chain, once the statement has ended.
func Mend(db *gorm.DB) {
	if db.Error == nil {
		return
	}
	db.Error = once(db.Error)
	kept, ok := db.Statement.Settings.LoadAndDelete(added{})
	if !ok {
		return
	}
	err := kept.(error) //nolint:forcetypeassert // Add stored it
	if !errors.Is(db.Error, err) && strings.Contains(db.Error.Error(), err.Error()) {
		db.Error = &mended{text: db.Error.Error(), errs: []error{err, db.Error}}
	}
}

type mended struct {
	text string
	errs []error
}

func (e *mended) Error() string   { return e.text }
func (e *mended) Unwrap() []error { return e.errs }

// once removes duplicates from an error of gormlock that GORM has joined with itself: GORM adds the error of an association again with each later
// one.
func once(err error) error {
	only, text := err, "; "+err.Error()
	if !strings.HasPrefix(text, "; gormlock: ") {
		return err
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		if own := "; " + inner.Error(); text != own && strings.ReplaceAll(text, own, "") == "" {
			only = inner
		}
	}
	return only
}
