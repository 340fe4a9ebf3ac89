package gormlock

import "gorm.io/gorm"

// checkVersionsBeforeDelete settles which version each row must have. A soft delete is an update inside: its
// version moves.
func checkVersionsBeforeDelete(db *gorm.DB) {
	w := versionWriteOf(db.Statement)
	if w == nil || db.Error != nil {
		return
	}
	w.filtered = filtered(db.Statement)
	if err := w.prepare(db.Statement); err != nil {
		w.refuse(db, err)
		return
	}
	w.addKey = w.partialKey && len(w.rows) == 1
	w.everywhere(db.Statement)
	w.wantAssigned(db.Statement)
	w.arm(db.Statement)
}

// checkVersionsAfterDelete compares what was deleted with what was to be.
func checkVersionsAfterDelete(db *gorm.DB) {
	w := versionWriteOf(db.Statement)
	if w == nil {
		return
	}
	w.returning.collect(db.Statement)
	w.settle(db)
}
