package concern

import (
	"fmt"
	"strings"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/statement"
)

// RefuseDisplaced refuses a statement that concerns gormlock, if a callback is gone by which GORM runs ours in time. Others go on.
func RefuseDisplaced(db *gorm.DB, callback string) bool {
	if db.Error == nil && asks(db) {
		fault.Add(db, fmt.Errorf("gormlock: %s: not executed, %s is missing among the callbacks, or was registered again, so that others run too late: "+
			"replace it with Replace, or remove it before db.Use(gormlock.New()), and a begin_transaction with its commit", statement.TableName(db.Statement), callback))
	}
	return fault.IsAdded(db.Statement)
}

// asks reports whether a statement asks for something of gormlock, or its model does.
func asks(db *gorm.DB) bool {
	for name := range db.Statement.Clauses {
		if strings.HasPrefix(name, "gormlock:") && name != noneClause {
			return true
		}
	}
	return mark.IsOn(db.Statement) || db.Statement.Schema != nil && !hasNoTags(db)
}
