package rowlock

import (
	"database/sql/driver"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/statement"
)

// held is an argument that a row lock adds to a sub-query that was made outside of a transaction. The statement around the sub-query decides:
// if it is a query outside of a transaction, it fails, because the lock would end with it. In a transaction, or in a write, the lock is useful.
type held struct{ err error }

// Value implements [driver.Valuer].
func (h held) Value() (driver.Value, error) {
	if statement.InReadOutside() {
		return nil, h.err
	}
	return int64(1), nil
}

// GoString keeps drivers that quote the argument in their message from printing its fields.
func (held) GoString() string { return "the row lock of a sub-query" }

// mustBeHeld makes the statement around a sub-query check that the lock lasts.
func mustBeHeld(stmt *gorm.Statement) {
	err := fmt.Errorf("%w: lock rows of %s in a sub-query", fault.ErrNoTransaction, statement.TableName(stmt))
	stmt.AddClause(clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "? = 1", Vars: []any{held{err}}}}})
}

// letWrite allows row locks in the sub-queries of a text that writes: outside of a transaction such a text is a transaction by itself.
func letWrite(stmt *gorm.Statement) {
	if stmt.SQL.Len() == 0 {
		return
	}
	var writes, asked bool
	for i, value := range stmt.Vars {
		if _, is := value.(held); !is {
			continue
		}
		if !asked {
			writes, asked = !sqltext.Reads(stmt.SQL.String()), true
		}
		if writes {
			stmt.Vars[i] = 1
		}
	}
}
