package work

import "gorm.io/gorm"

// Runs is how many runs on the pool of db this process has.
func Runs(db *gorm.DB) (n int) {
	runs.Range(func(_, run any) bool {
		if pool, err := db.DB(); err == nil && run.(*engine).db.DB == pool { //nolint:forcetypeassert // stored by Worker.engine
			n++
		}
		return true
	})
	return n
}

// Ears is how many workers of this process share each connection that listens, at most.
func Ears(database string) (most int) {
	local.Lock()
	defer local.Unlock()
	for _, l := range local.lines {
		if l.database == database {
			most = max(most, len(l.ears))
		}
	}
	return most
}
