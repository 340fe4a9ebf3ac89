package versions_test

import (
	"database/sql"
	"fmt"
	"math"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A version that the caller names and that no row can have is an error: it is not taken for another one that a row has.
func TestExpectVersion_largerThanAnyRowHas(t *testing.T) {
	t.Parallel()
	type counter struct {
		ID, N   int64
		Version int64 `gormlock:"version"`
	}
	type large uint64
	db := stand.Versioned(t, []any{&counter{}, &systemRow{}})
	stand.Must(t, db.Exec("INSERT INTO counters VALUES (1, 0, -1), (2, 0, -9223372036854775808)").Error)
	stand.Must(t, db.Create(&systemRow{ID: 1}).Error)
	own := stand.Row[systemRow](t, db, 1).Version
	most, half := uint64(math.MaxUint64), uint64(1<<63)
	for name, version := range map[string]any{
		"uint64": most, "2^63": half, "uint": uint(math.MaxUint64), "*uint64": &most, "*2^63": &half, "a type of its own": large(most),
		"sql.Null of uint64": sql.Null[uint64]{V: most, Valid: true},
	} {
		refused(t, name, db.Clauses(gormlock.ExpectVersion(version)).Model(&counter{}).Where("id > 0").Update("n", 1))
		refused(t, name+", in a map", db.Model(&counter{}).Where("id > 0").Updates(map[string]any{"n": 1, "version": version}))
		refused(t, name+", xmin", db.Clauses(gormlock.ExpectVersion(version)).Model(&systemRow{}).Where("id = 1").Update("n", 1))
	}
	for _, version := range []any{int64(-1), uint64(own) + 1<<32, int64(own) - 1<<32} { // a server before 16 takes the last 32 bits
		refused(t, fmt.Sprint(version), db.Clauses(gormlock.ExpectVersion(version)).Model(&systemRow{}).Where("id = 1").Update("n", 1))
	}
	stand.MustDo(t, db.Clauses(gormlock.ExpectVersion(uint64(own))).Model(&systemRow{}).Where("id = 1").Update("n", 1))
	stand.Equal(t, "n", stand.Row[counter](t, db, 1).N, 0)
}

// systemRow is a row whose version is xmin.
type systemRow struct {
	ID, N   int64
	Version uint32 `gorm:"column:xmin;type:xid;->;-:migration" gormlock:"version,xmin"`
}

func refused(t *testing.T, name string, written *gorm.DB) {
	t.Helper()
	if written.Error == nil || !strings.Contains(written.Error.Error(), "is not a version: no row can have it") {
		t.Errorf("%s: %v, %d rows", name, written.Error, written.RowsAffected)
	}
}
