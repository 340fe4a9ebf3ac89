package statement

import "gorm.io/gorm"

// Nested runs fn after a savepoint in the open transaction, even if the program has disabled nested transactions. If fn fails, or the context of
// db has ended when it returns, the work of fn is rolled back: see journal.Hear. If no transaction is open, Nested begins one.
func Nested(db *gorm.DB, fn func(tx *gorm.DB) error) error {
	nested := Session(db, gorm.Session{})
	flat := nested.DisableNestedTransaction
	nested.DisableNestedTransaction = false
	return nested.Transaction(func(tx *gorm.DB) error {
		tx.DisableNestedTransaction = flat // restores the program's setting inside of fn
		if err := fn(tx); err != nil {
			return err
		}
		return tx.Statement.Context.Err()
	})
}
