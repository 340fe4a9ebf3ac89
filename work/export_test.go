package work

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
