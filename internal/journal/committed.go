package journal

import "gorm.io/gorm"

// afterCommit is a step that waits for the commit.
type afterCommit func()

// Undo does nothing: the function is only called after a commit that is certain.
func (afterCommit) Undo() {}

// Lose does nothing.
func (afterCommit) Lose() {}

// AfterCommit has do called once the transaction that the statement runs in is committed, on the goroutine that commits.
// It is not called after a rollback, or after a rollback to the savepoint that is open now. If gormlock does not see the
// transaction's end, AfterCommit reports false and never calls do.
func AfterCommit(stmt *gorm.Statement, do func()) bool {
	j := Of(stmt)
	if j == nil {
		return false
	}
	j.AfterCommit(do)
	return true
}

// AfterCommit has do called once the transaction of the journal is committed.
func (j *journal) AfterCommit(do func()) {
	if !j.Keep(afterCommit(do)) {
		do()
	}
}
