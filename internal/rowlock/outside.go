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

// held is an argument that a row lock leaves in a sub-query that was made outside of a transaction. The query around it may be inside of one,
// or be a write, so it decides: a query that is sent outside of a transaction fails, because the lock would end with it.
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

// mustBeHeld makes the query around a sub-query see to it that the lock lasts.
func mustBeHeld(stmt *gorm.Statement) {
	err := fmt.Errorf("%w: lock rows of %s in a sub-query", fault.ErrNoTransaction, statement.TableName(stmt))
	stmt.AddClause(clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "? = 1", Vars: []any{held{err}}}}})
}

// letWrite lets a text write what the sub-queries in it lock: it is a transaction by itself.
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
