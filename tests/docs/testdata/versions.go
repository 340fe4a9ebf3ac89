package versions

import "time"

type Account struct {
	ID, Balance int64
	Version     int64 `gormlock:"version"`
}

type Row struct {
	ID    int64
	State string
}

var (
	account, order Account
	row, before    Row
	t              time.Time
)
