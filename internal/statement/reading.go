package statement

import "strings"

const (
	queryCallback = "callbacks.Query"
	rowCallback   = "callbacks.RowQuery"
	ownTx         = "database/sql.(*Tx)."
	preparedTx    = "gorm.(*PreparedStmtTX)."
)

// InReadOutside reports whether the value of an argument is asked for because GORM sends a query outside of a transaction. An update and a
// delete are one by themselves.
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
