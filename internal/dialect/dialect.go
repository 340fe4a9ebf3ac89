// Package dialect knows the differences between databases with versioned and locked rows: PostgreSQL, MariaDB and MySQL, and SQLite in tests. Other
// packages ask it what a database can do, and never look at its name.
package dialect

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/sqlstate"
)

// Dialect is the SQL that a database speaks.
type Dialect struct {
	name    string // the name that GORM's driver has
	version string // as the driver of MariaDB and MySQL reads it
}

// Of is the dialect of the database.
func Of(db *gorm.DB) Dialect {
	d := Dialect{name: db.Name()}
	if d.IsMySQL() {
		if config := reflect.Indirect(reflect.ValueOf(db.Dialector)); config.Kind() == reflect.Struct {
			if version := config.FieldByName("ServerVersion"); version.IsValid() && version.Kind() == reflect.String {
				d.version = version.String()
			}
		}
	}
	return d
}

// IsPostgres reports whether the database is PostgreSQL, or a server that speaks its dialect.
func (d Dialect) IsPostgres() bool { return d.name == "postgres" }

// IsMySQL reports whether the database is MariaDB or MySQL.
func (d Dialect) IsMySQL() bool { return d.name == "mysql" }

// IsSQLite reports whether the database is SQLite, on which tests run.
func (d Dialect) IsSQLite() bool { return d.name == "sqlite" }

// IsMariaDB reports whether the server has said that it is MariaDB.
func (d Dialect) IsMariaDB() bool { return strings.Contains(d.version, "MariaDB") }

// KnowsForShare reports whether the server has said that it is MySQL, which knows FOR SHARE.
func (d Dialect) KnowsForShare() bool { return d.IsMySQL() && d.version != "" && !d.IsMariaDB() }

// String names the server for people.
func (d Dialect) String() string {
	switch {
	case d.IsMariaDB():
		return "MariaDB"
	case d.IsMySQL():
		return "MySQL"
	}
	return d.name
}

// LocksRows reports whether the server can lock the rows that a query reads.
func (d Dialect) LocksRows() bool { return d.IsPostgres() || d.IsMySQL() }

// Strength is the lock that the database uses for a strength: MariaDB and MySQL know only two strengths, and use the stronger one.
func (d Dialect) Strength(strength string) string {
	if !d.IsMySQL() {
		return strength
	}
	switch strength {
	case "NO KEY UPDATE":
		return "UPDATE"
	case "KEY SHARE":
		return "SHARE"
	}
	return strength
}

// RefusesLocksSafely reports whether a lock that is not granted leaves the transaction usable. PostgreSQL aborts it.
func (d Dialect) RefusesLocksSafely() bool { return d.IsMySQL() }

// LockTimeout is the setting that bounds a wait for a row.
func (d Dialect) LockTimeout() string {
	if d.IsMySQL() {
		return "innodb_lock_wait_timeout"
	}
	return "lock_timeout"
}

// Current is added to the end of a query in a transaction, so that it reads rows as they are now. Without it MariaDB and MySQL show rows as they
// are in the snapshot of the transaction, even rows that it has locked.
func (d Dialect) Current() string {
	if d.IsMySQL() {
		return " LOCK IN SHARE MODE"
	}
	return ""
}

// UpdateReturns reports whether an UPDATE can return the rows it wrote. GORM's driver claims that MariaDB can, which is wrong.
func (d Dialect) UpdateReturns() bool { return !d.IsMySQL() }

// CountsChanged reports whether an update only counts the rows that it really changes.
func (d Dialect) CountsChanged() bool { return d.IsMySQL() }

// DropsZone reports whether a column of this type stores what the clock shows, without its zone.
func (d Dialect) DropsZone(kind string) bool {
	kind = strings.ToLower(kind)
	return d.IsPostgres() && strings.HasPrefix(kind, "timestamp") && !strings.HasPrefix(kind, "timestamptz") && !strings.Contains(kind, "with time zone")
}

// Instant is a time column for a comparison with a time in UTC. SQLite compares texts, and each has its zone.
func (d Dialect) Instant(column string) string {
	if !d.IsSQLite() {
		return column
	}
	return "CASE WHEN substr(" + column + ",-6,1) IN ('+','-') AND substr(" + column + ",-3,1)=':' THEN " +
		"datetime(substr(" + column + ",1,19)||substr(" + column + ",-6))||substr(" + column + ",20,length(" + column + ")-25)||'+00:00' ELSE " + column + " END"
}

// KnowsOtherNames reports whether the server finds a column in an assignment by its name in other letters, or with the name of its table before it.
func (d Dialect) KnowsOtherNames() bool { return d.IsMySQL() || d.IsSQLite() }

// CommitsTables reports whether the server commits the open transaction before a statement that creates or changes tables.
func (d Dialect) CommitsTables() bool { return d.IsMySQL() }

// FindsByAnyIndex reports whether an upsert finds rows by each unique index, whichever one it names.
func (d Dialect) FindsByAnyIndex() bool { return d.IsMySQL() }

// Same is the operator that is true for equal values, and for NULL and NULL.
func (d Dialect) Same() string {
	switch {
	case d.IsPostgres():
		return " IS NOT DISTINCT FROM "
	case d.IsMySQL():
		return "<=>"
	}
	return " IS "
}

// Proposed is the value that an upsert proposes for a quoted column.
func (d Dialect) Proposed(column string) string {
	if d.IsMySQL() {
		return "VALUES(" + column + ")"
	}
	return `"excluded".` + column
}

// KnowsDefault reports whether a row of VALUES can contain DEFAULT.
func (d Dialect) KnowsDefault() bool { return !d.IsSQLite() }

// Excluded reports whether value is a column of the proposed row, and the name of that column.
func Excluded(value any) (column string, is bool) {
	c, ok := value.(clause.Column)
	return c.Name, ok && c.Table == "excluded"
}

// Bytes is the text before and after a value of a column of MariaDB or MySQL, so that it is compared by its bytes: collations treat different texts
// as equal, and ignore blanks at the end. Bits that a struct holds as bytes are not a number.
func (Dialect) Bytes(column string, held reflect.Type) (before, behind string) {
	kind := strings.ToLower(column)
	if strings.HasPrefix(kind, "bit") && held.Kind() == reflect.Slice {
		return "CAST(", " AS BINARY)"
	}
	for _, text := range []string{"char", "text", "enum", "set(", "json"} {
		if strings.Contains(kind, text) {
			return "CAST(CONVERT(", " USING utf8mb4) AS BINARY)"
		}
	}
	return "", ""
}

// StoredTime is the text before and after a time that a struct holds, so that it is as the column stores it. MySQL rounds times, and MariaDB does
// if sql_mode says so.
func (Dialect) StoredTime(column string, held reflect.Type) (before, behind string) {
	kind := strings.ToLower(column)
	switch {
	case held != reflect.TypeFor[time.Time]():
	case strings.HasPrefix(kind, "datetime"), strings.HasPrefix(kind, "timestamp"):
		_, precision, has := strings.Cut(kind, "(")
		precision, _, closed := strings.Cut(precision, ")")
		if has && closed {
			return "CAST(", " AS DATETIME(" + precision + "))"
		}
		return "CAST(", " AS DATETIME)"
	case strings.HasPrefix(kind, "date"):
		return "CAST(", " AS DATE)"
	}
	return "", ""
}

// IsInexact reports whether the server sends a value other than the one that such a column holds.
func (d Dialect) IsInexact(column string) bool {
	kind := strings.ToLower(column)
	return d.IsMySQL() && (strings.HasPrefix(kind, "float") || strings.HasPrefix(kind, "real"))
}

// Interval is a span of time that can be added to a time.
func (d Dialect) Interval(span time.Duration) string {
	micros := strconv.FormatInt(span.Microseconds(), 10)
	if d.IsMySQL() {
		return "INTERVAL " + micros + " MICROSECOND"
	}
	return "interval '" + micros + " microseconds'"
}

// Largest is the largest number that a column holds, if the database has types of its own.
func (d Dialect) Largest(column string) (largest int64, decided bool) {
	if !d.IsMySQL() {
		return 0, false
	}
	bits := 64
	for name, width := range map[string]int{"tinyint": 8, "bool": 8, "smallint": 16, "mediumint": 24, "int": 32} {
		if strings.HasPrefix(column, name) {
			bits = width
		}
	}
	if !strings.Contains(column, "unsigned") || bits == 64 {
		bits--
	}
	return math.MaxInt64 >> (63 - bits), true
}

// One is what is added to a version. If MariaDB and MySQL are not strict, they store the largest number of a column instead of a larger one, so
// many writers would write the same version. For columns that reach their end, One makes the statement fail there. It also does on PostgreSQL if
// the field is narrow, because a larger version could no longer be read.
func (d Dialect) One(column string, largest int64, narrow bool) string {
	if d.IsPostgres() && narrow {
		return "CASE WHEN COALESCE(" + column + ",0)<" + strconv.FormatInt(largest, 10) + " THEN 1 ELSE 9223372036854775807+(" + column + "-" + column + ")+1 END"
	}
	if !d.IsMySQL() || largest == math.MaxInt64 || largest == 0 {
		return "1"
	}
	why := "the version is the largest its column holds"
	if narrow {
		why = "the version is the largest its field can have"
	}
	return "IF(COALESCE(" + column + ",0)<" + strconv.FormatInt(largest, 10) + ",1," + never(column, why) + ")"
}

// BigInt is the type to which an integer is cast.
func (d Dialect) BigInt() string {
	if d.IsMySQL() {
		return "SIGNED"
	}
	return "bigint"
}

// Tick is the precision of a time column, if the database alone decides it.
func (d Dialect) Tick(db *gorm.DB, field *schema.Field) (tick time.Duration, decided bool) {
	if !d.IsMySQL() {
		return 0, false
	}
	precision := 0
	kind := strings.ToLower(db.DataTypeOf(field))
	if _, in, has := strings.Cut(kind, "("); has {
		digits, _, _ := strings.Cut(in, ")")
		precision, _ = strconv.Atoi(strings.TrimSpace(digits))
	}
	tick = time.Second
	for range min(precision, 6) {
		tick /= 10
	}
	return tick, true
}

// FarInTime is the difference between a time of a column and one that no row has: timestamps of MariaDB and MySQL begin in 1970 and end in 2038.
// After 28 years the calendar repeats.
func (d Dialect) FarInTime(column string) (far time.Duration, decided bool) {
	return -10_227 * 24 * time.Hour, d.IsMySQL() && strings.HasPrefix(strings.ToLower(column), "timestamp")
}

// Later writes a time that is not before a given one, and at least a tick after the column's. value writes the given time, and had is the column.
func (d Dialect) Later(text func(...string), value func(), had string, tick time.Duration) {
	if d.IsMySQL() { // there GREATEST of a NULL is NULL
		text("GREATEST(")
		value()
		text(",COALESCE(", had, "+", d.Interval(tick), ",'1000-01-01'))")
		return
	}
	text("GREATEST(")
	value()
	text(",", had, "+", d.Interval(tick), ")")
}

// Latest writes a tick after the later of a given time and the column's time.
func (d Dialect) Latest(text func(...string), value func(), had string, tick time.Duration) {
	text("GREATEST(")
	value()
	if d.IsMySQL() {
		had = "COALESCE(" + had + ",'1000-01-01')"
	}
	text(",", had, ")+", d.Interval(tick))
}

// never is an expression of MariaDB and MySQL that fails when it is evaluated for a row. It depends on the row, so the server does not evaluate it
// earlier.
func never(column, why string) string {
	return "COALESCE(LENGTH(" + column + "),LENGTH('" + why + "'))*0+9223372036854775807+1"
}

// OrFail turns a condition into one that fails the statement if it is false. It is for MariaDB and MySQL, whose upserts have no condition.
func OrFail(text func(...string), column string, condition func()) {
	text("((")
	condition()
	text(") OR (", never(column, failure), ")>0)")
}

// failure is the part of OrFail that the server's error shows.
const failure = "gormlock"

// IsFailure reports whether err is the server's error for OrFail. The text around the mark depends on the server's language.
func IsFailure(err error) bool {
	return sqlstate.IsOutOfRange(err) && strings.Contains(err.Error(), "'"+failure+"'")
}
