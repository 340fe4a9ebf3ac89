package merges_test

import (
	"testing"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type labeled struct {
	ID    int64
	State string
	B     map[string]any `gorm:"type:jsonb;serializer:json"`
	J     []string       `gorm:"type:json;serializer:json"`
	T     *int           `gorm:"type:text;serializer:json"`
}

// The JSON serializer of GORM reads null as nil, and writes nil as NULL: the two are one value.
func TestJSON_nullIsNULL(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&labeled{}})
	for _, values := range []string{"1,'a','null','null','null'", "2,'a',NULL,NULL,NULL"} {
		stand.Must(t, db.Exec("INSERT INTO labeleds VALUES ("+values+")").Error)
	}
	for id := range int64(2) {
		before := stand.Row[labeled](t, db, id+1)
		stand.Must(t, db.Model(&labeled{ID: id + 1}).Clauses(gormlock.IfUnchanged(&before)).Update("state", "b").Error)
		base := stand.Row[labeled](t, db, id+1)
		one, mine := 1, base
		mine.B, mine.J, mine.T = map[string]any{"a": "b"}, []string{"c"}, &one
		stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
		stand.Equal(t, "stored", *stand.Row[labeled](t, db, id+1).T, 1)
		stand.MustStale(t, db.Model(&mine).Clauses(gormlock.IfUnchanged(&base)).Update("state", "c").Error)
	}
	stand.Must(t, db.Exec("UPDATE labeleds SET b='{}' WHERE id=1").Error)
	stand.MustStale(t, db.Model(&labeled{ID: 1}).Clauses(gormlock.IfUnchanged(&labeled{ID: 1}, "b")).Update("state", "c").Error)
}
