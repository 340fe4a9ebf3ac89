// Package dialect knows how the databases differ in which versioned and locked rows can be: PostgreSQL, MariaDB and
// MySQL, and SQLite in tests. Other packages ask it what a database can do, and never look at its name.
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
	name    string // as GORM's driver calls it
	version string // as the driver of MariaDB and MySQL has asked for it
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

// IsPostgres reports whether it is PostgreSQL's, or that of a server that speaks like it.
func (d Dialect) IsPostgres() bool { return d.name == "postgres" }

// IsMySQL reports whether it is that of MariaDB or MySQL.
func (d Dialect) IsMySQL() bool { return d.name == "mysql" }

// IsSQLite reports whether it is that of SQLite, which tests run on.
func (d Dialect) IsSQLite() bool { return d.name == "sqlite" }

// IsMariaDB reports whether the server has said that it is a MariaDB.
func (d Dialect) IsMariaDB() bool { return strings.Contains(d.version, "MariaDB") }

// KnowsForShare reports whether the server has said that it is a MySQL, which knows FOR SHARE.
func (d Dialect) KnowsForShare() bool { return d.IsMySQL() && d.version != "" && !d.IsMariaDB() }

// String is the server for people.
func (d Dialect) String() string {
	switch {
	case d.IsMariaDB():
		return "MariaDB"
	case d.IsMySQL():
		return "MySQL"
	}
	return d.name
}

// LocksRows reports whether the server locks rows that a query reads.
func (d Dialect) LocksRows() bool { return d.IsPostgres() || d.IsMySQL() }

// Strength is how strongly rows are locked that are to be locked so: MariaDB and MySQL know two strengths, and take the
// stronger one.
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

// RefusesLocksSafely reports whether a lock that is not granted leaves the transaction as it was: PostgreSQL aborts it.
func (d Dialect) RefusesLocksSafely() bool { return d.IsMySQL() }

// LockTimeout is the setting that bounds a wait for a row.
func (d Dialect) LockTimeout() string {
	if d.IsMySQL() {
		return "innodb_lock_wait_timeout"
	}
	return "lock_timeout"
}

// Current is what a query in a transaction ends with for it to read rows as they are. Without it MariaDB and MySQL show them as
// the snapshot of the transaction has them, even those that it has locked.
func (d Dialect) Current() string {
	if d.IsMySQL() {
		return " LOCK IN SHARE MODE"
	}
	return ""
}

// UpdateReturns reports whether an UPDATE can return the rows it wrote. GORM's driver claims it of MariaDB, which cannot.
func (d Dialect) UpdateReturns() bool { return !d.IsMySQL() }

// CountsChanged reports whether an update that leaves a row as it was does not count it.
func (d Dialect) CountsChanged() bool { return d.IsMySQL() }

// DropsZone reports whether a column of this type keeps what the clock shows, without its zone.
func (d Dialect) DropsZone(kind string) bool {
	kind = strings.ToLower(kind)
	return d.IsPostgres() && strings.HasPrefix(kind, "timestamp") && !strings.HasPrefix(kind, "timestamptz") && !strings.Contains(kind, "with time zone")
}

// Instant is a column of times to be compared with one in UTC. SQLite compares texts, and has a zone in each.
func (d Dialect) Instant(column string) string {
	if !d.IsSQLite() {
		return column
	}
	return "CASE WHEN substr(" + column + ",-6,1) IN ('+','-') AND substr(" + column + ",-3,1)=':' THEN " +
		"datetime(substr(" + column + ",1,19)||substr(" + column + ",-6))||substr(" + column + ",20,length(" + column + ")-25)||'+00:00' ELSE " + column + " END"
}

// KnowsOtherNames reports whether the server finds a column by its name in other letters, or behind the name of its table, where one
// is assigned to.
func (d Dialect) KnowsOtherNames() bool { return d.IsMySQL() || d.IsSQLite() }

// CommitsTables reports whether the server commits the open transaction before a statement about tables.
func (d Dialect) CommitsTables() bool { return d.IsMySQL() }

// FindsByAnyIndex reports whether an upsert finds rows by each unique index, whichever one it names.
func (d Dialect) FindsByAnyIndex() bool { return d.IsMySQL() }

// Same is the operator that holds of equal values, and of NULL and NULL.
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

// KnowsDefault reports whether a row of VALUES can name the default of its column.
func (d Dialect) KnowsDefault() bool { return !d.IsSQLite() }

// Excluded reports whether the value is that of the proposed row, and the name of its column.
func Excluded(value any) (column string, is bool) {
	c, ok := value.(clause.Column)
	return c.Name, ok && c.Table == "excluded"
}

// Bytes is what stands before and behind a value of a column of MariaDB or MySQL, for it to be compared by its bytes: its
// collation takes other texts for the same, and any collation ignores blanks at the end. Bits that a struct holds as bytes are
// no number.
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

// StoredTime is what stands before and behind a time that a struct holds, for it to be as the column stores it: sql_mode decides
// whether MariaDB rounds it, and MySQL does.
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

// IsInexact reports whether the server sends another value of such a column than it holds.
func (d Dialect) IsInexact(column string) bool {
	kind := strings.ToLower(column)
	return d.IsMySQL() && (strings.HasPrefix(kind, "float") || strings.HasPrefix(kind, "real"))
}

// Interval is a span of time, to be added to a time.
func (d Dialect) Interval(span time.Duration) string {
	micros := strconv.FormatInt(span.Microseconds(), 10)
	if d.IsMySQL() {
		return "INTERVAL " + micros + " MICROSECOND"
	}
	return "interval '" + micros + " microseconds'"
}

// Largest is the largest number that a column holds, where the database has types of its own.
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

// One is what is added to a version. MariaDB and MySQL, where they are not strict, keep the largest number that a column holds
// instead of a larger one: many writers would write at one version. It fails there, for columns that come to their end, and
// on PostgreSQL if the field is narrow: it could not be read any more.
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

// Tick is the precision of a column of times, where the database alone decides it.
func (d Dialect) Tick(db *gorm.DB, field *schema.Field) (tick time.Duration, decided bool) {
	if !d.IsMySQL() {
		return 0, false
	}
	precision := 0
	kind := ColumnType(db, field)
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

// FarInTime is a span between a time of a column and one that no row has: timestamps of MariaDB and MySQL end in 2038 and begin in
// 1970. After 28 years a calendar is the same again.
func (d Dialect) FarInTime(column string) (far time.Duration, decided bool) {
	return -10_227 * 24 * time.Hour, d.IsMySQL() && strings.HasPrefix(strings.ToLower(column), "timestamp")
}

// Later is a time that is no earlier than one given, and later by a tick than what the column has: value writes the first,
// had is the second.
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

// Latest is a tick past a time given and what the column has.
func (d Dialect) Latest(text func(...string), value func(), had string, tick time.Duration) {
	text("GREATEST(")
	value()
	if d.IsMySQL() {
		had = "COALESCE(" + had + ",'1000-01-01')"
	}
	text(",", had, ")+", d.Interval(tick))
}

// never is an expression of MariaDB and MySQL that fails when it is evaluated for a row. It depends on the row, so the
// server does not evaluate it before.
func never(column, why string) string {
	return "COALESCE(LENGTH(" + column + "),LENGTH('" + why + "'))*0+9223372036854775807+1"
}

// OrFail makes of a condition one that fails the statement where it does not hold, on MariaDB and MySQL, whose upserts have
// no condition of their own.
func OrFail(text func(...string), column string, condition func()) {
	text("((")
	condition()
	text(") OR (", never(column, failure), ")>0)")
}

// failure is the part of OrFail that the server's error shows.
const failure = "gormlock"

// IsFailure reports whether the error of a server is that of OrFail. The words around it are of the server's language.
func IsFailure(err error) bool {
	return sqlstate.IsOutOfRange(err) && strings.Contains(err.Error(), "'"+failure+"'")
}
