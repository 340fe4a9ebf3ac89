package statement

import "gorm.io/gorm"

// Nested runs fn in a transaction inside of the open one, a savepoint, also if the program has told GORM to make none. If fn fails, or the
// context of db has ended when it returns, what fn did is rolled back: see journal.Hear. If no transaction is open, it has one of its own.
func Nested(db *gorm.DB, fn func(tx *gorm.DB) error) error {
	nested := Session(db, gorm.Session{})
	flat := nested.DisableNestedTransaction
	nested.DisableNestedTransaction = false
	return nested.Transaction(func(tx *gorm.DB) error {
		tx.DisableNestedTransaction = flat // it is told of those in fn
		if err := fn(tx); err != nil {
			return err
		}
		return tx.Statement.Context.Err()
	})
}
