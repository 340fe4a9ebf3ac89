package statement

import "strings"

const (
	queryCallback = "callbacks.Query"
	rowCallback   = "callbacks.RowQuery"
	ownTx         = "database/sql.(*Tx)."
	preparedTx    = "gorm.(*PreparedStmtTX)."
)

// InReadOutside reports whether database/sql asks an argument for its value because GORM sends a query outside of a transaction. An update or
// a delete is a transaction by itself, so it does not count.
func InReadOutside() bool {
	for function := range callers() {
		switch {
		case strings.Contains(function, ownTx), strings.Contains(function, preparedTx), strings.HasSuffix(function, execute):
			return false
		case strings.HasSuffix(function, queryCallback), strings.HasSuffix(function, rowCallback):
			return true
		}
	}
	return false
}
