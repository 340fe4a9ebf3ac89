package mariadb_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// sorted has a column of each type.
type sorted struct {
	ID       int64
	Char     string `gorm:"type:char(10)"`
	Latin    string `gorm:"type:varchar(20) character set latin1 collate latin1_swedish_ci"`
	Enum     string `gorm:"type:enum('a','B','c d')"`
	Set      string `gorm:"type:set('x','y','z')"`
	JSON     string `gorm:"type:json"`
	Bits     []byte `gorm:"type:bit(12)"`
	Bool     bool
	Decimal  string  `gorm:"type:decimal(30,10)"`
	Price    float64 `gorm:"type:decimal(10,2)"`
	Double   float64
	Digits   string         `gorm:"type:bigint"`
	Year     int            `gorm:"type:year"`
	Date     time.Time      `gorm:"type:date"`
	Clock    string         `gorm:"type:time(3)"`
	Stamp    time.Time      `gorm:"type:timestamp(6)"`
	Second   time.Time      `gorm:"type:datetime"`
	Maybe    *time.Time     `gorm:"precision:3"`
	Blob     []byte         `gorm:"type:blob"`
	Binary   []byte         `gorm:"type:binary(8)"`
	UUID     string         `gorm:"type:uuid"`
	Address  string         `gorm:"type:inet6"`
	Text     string         `gorm:"type:mediumtext"`
	Map      map[string]any `gorm:"serializer:json"`
	Null     sql.NullString
	Unsigned uint64
	Other    string
}

// changes are other values of each column, as near as they can be to those in newSorted.
var changes = map[string]string{
	"char": "'AB'", "latin": "'äe '", "enum": "'b'", "set": "'x,y'", "json": `'{"b": 1, "a":[1,3]}'`, "bits": "b'100000000100'", "bool": "0",
	"decimal": "12345678901234567890.2", "price": "3.15", "double": "0.30000000000000004", "digits": "9007199254740992", "year": "2027", "date": "date + INTERVAL 1 DAY",
	"clock": "'10:11:12.346'", "stamp": "stamp + INTERVAL 1 MICROSECOND", "second": "second + INTERVAL 1 SECOND", "maybe": "NULL", "blob": "x'00ff02'", "binary": "x'0103'",
	"uuid": "'123E4567-e89b-12d3-a456-426614174001'", "address": "'::2'", "text": "'text '", "map": `'{"a":"b","z":1.6}'`, "null": "''", "unsigned": "18446744073709551614",
}

func newSorted() sorted {
	now := time.Now()
	return sorted{
		ID: 1, Char: "ab", Latin: "äé ", Enum: "a", Set: "x,z", JSON: `{"b": 1, "a":[1,2]}`, Bits: []byte{8, 5}, Bool: true, Decimal: "12345678901234567890.1", Price: 3.14,
		Double: 0.3, Digits: "9007199254740993", Year: 2026, Date: now, Clock: "10:11:12.345", Stamp: now, Second: now, Maybe: &now, Blob: []byte{0, 255, 1}, Binary: []byte{1, 2},
		UUID: "123E4567-e89b-12d3-a456-426614174000", Address: "::1", Text: "text  ", Map: map[string]any{"z": 1.5, "a": "b"}, Null: sql.NullString{Valid: true, String: "x"}, Unsigned: 1<<64 - 1,
	}
}

// IfUnchanged and SaveMerged tell what was changed from what was not, in a column of each type and however values are sent.
func TestEachType(t *testing.T) {
	t.Parallel()
	for name, param := range map[string]string{"prepared": "maxAllowedPacket=0", "interpolated": "interpolateParams=true", "another zone": "loc=Asia%2FTokyo", "rounding": "sql_mode=%27TIME_ROUND_FRACTIONAL%27"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := mariaserver.Open(t, []any{&sorted{}}, mariaserver.Param(param))
			created := newSorted()
			stand.Must(t, db.Create(&created).Error)
			read := stand.Row[sorted](t, db, 1)
			for column, change := range changes {
				for from, before := range map[string]sorted{"read": read, "created": created} {
					if from == "created" && (column == "binary" || column == "decimal" || column == "uuid") {
						continue // the server stores it in other bytes
					}
					stand.InTx(t, db, func(tx *gorm.DB) {
						if err := tx.Clauses(gormlock.IfUnchanged(&before, column)).Model(&sorted{ID: 1}).Update("other", "x").Error; err != nil {
							t.Errorf("%s, as it was %s: %v", column, from, err)
						}
					})
				}
				stand.InTx(t, db, func(tx *gorm.DB) {
					changed := tx.Exec(fmt.Sprintf("UPDATE sorteds SET `%s` = %s", column, change))
					stand.Must(t, changed.Error)
					stand.Equal(t, column+": rows changed", changed.RowsAffected, 1)
					before, mine, base := read, read, read
					stand.MustStale(t, tx.Clauses(gormlock.IfUnchanged(&before, column)).Model(&sorted{ID: 1}).Update("other", "x").Error)
					theirs := stand.Row[sorted](t, tx, 1)
					mine.Other, theirs.Other = "mine", "mine"
					stand.Must(t, gormlock.SaveMerged(tx, &mine, &base))
					stand.Equal(t, column+": merged", fmt.Sprint(stand.Row[sorted](t, tx, 1)), fmt.Sprint(theirs))
				})
			}
		})
	}
}

// A time is compared as the column has stored it, whether the server rounds or cuts it.
func TestIfUnchanged_roundedTimes(t *testing.T) {
	t.Parallel()
	for name, param := range map[string]string{"cut": "maxAllowedPacket=0", "rounded": "sql_mode=%27TIME_ROUND_FRACTIONAL%27"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := mariaserver.Open(t, []any{&text{}}, mariaserver.Param(param))
			for i, nanos := range []int{0, 1, 499_999_999, 500_000_000, 999_999_999, 123_456_789, 600_500_501} {
				at := time.Date(2026, 1, 2, 3, 4, 5, nanos, time.UTC)
				row := text{ID: int64(i) + 1, When: at, At: at}
				stand.Must(t, db.Create(&row).Error)
				before := row
				stand.Must(t, db.Clauses(gormlock.IfUnchanged(&before, "when", "at")).Model(&row).Update("long", "x").Error)
				stand.Must(t, db.Exec("UPDATE texts SET `when` = `when` + INTERVAL 1000 MICROSECOND").Error)
				stand.MustStale(t, db.Clauses(gormlock.IfUnchanged(&before, "when")).Model(&row).Update("long", "x").Error)
			}
		})
	}
}
