package journal

import "gorm.io/gorm"

// afterCommit is a step that waits for the commit.
type afterCommit func()

// Undo and Lose do nothing: what is not known to be committed is not called.
func (afterCommit) Undo() {}

// Lose does nothing.
func (afterCommit) Lose() {}

// AfterCommit has do called once the transaction that the statement runs in is committed, on the goroutine that commits.
// It is not called after a rollback, nor when the savepoint that is open now is rolled back to. AfterCommit reports false,
// and calls nothing, where gormlock does not see the transaction's end.
func AfterCommit(stmt *gorm.Statement, do func()) bool {
	j := Of(stmt)
	if j == nil {
		return false
	}
	j.AfterCommit(do)
	return true
}

// AfterCommit does so for the transaction of the journal.
func (j *journal) AfterCommit(do func()) {
	if !j.Keep(afterCommit(do)) {
		do()
	}
}
