// Package check checks models before they are used: their tags, and the tables that the tags are about.
package check

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/tables"
)

// Models checks only the tags of models, and returns one error about everything that is wrong.
func Models(db *gorm.DB, models []any) error {
	if err := install.Usable(db); err != nil {
		return err
	}
	return each(db, models, nil)
}

// Columns checks the tags, and the columns that they describe.
func Columns(db *gorm.DB, models []any) error { return each(db, models, (*examination).columns) }

// All checks everything: tags, columns, whether other writers can leave the columns out, and gormlock's own tables.
func All(db *gorm.DB, models []any) error {
	if err := install.Usable(db); err != nil {
		return err
	}
	if err := mark.RefuseGiven(db, "Check", "it looks at models as they are: give it the db or the transaction itself"); err != nil {
		return err
	}
	return each(db, models, func(x *examination) {
		x.columns()
		x.defaults()
		x.own()
	})
}

// each examines the models one by one.
func each(db *gorm.DB, models []any, look func(*examination)) error {
	if len(models) == 0 {
		return fmt.Errorf("%w: no models", fault.ErrOption)
	}
	wrong := &problems{of: len(models)}
	for _, value := range models {
		x := &examination{db: db, name: fmt.Sprintf("%T", value)}
		if x.parse(value); x.found == nil && look != nil && !db.DryRun {
			look(x)
		}
		wrong.add(x)
	}
	if wrong.all == nil {
		return nil
	}
	return wrong
}

// problems collects what is wrong with the models of one call.
type problems struct {
	of, models int
	all        []error
	text       strings.Builder
}

func (p *problems) add(x *examination) {
	if x.found != nil {
		p.models++
	}
	for _, err := range x.found {
		fmt.Fprintf(&p.text, "\n\t%s: %s", x.name, strings.TrimPrefix(strings.TrimPrefix(err.Error(), "gormlock: "), x.name+"."))
		p.all = append(p.all, err)
	}
}

func (p *problems) Error() string {
	return fmt.Sprintf("gormlock: %d of %d models cannot be used as they are:%s", p.models, p.of, &p.text)
}

func (p *problems) Unwrap() []error { return p.all }

// examination examines one model.
type examination struct {
	db    *gorm.DB
	name  string
	model *model.Model
	table []column // nil: not read yet
	found []error
}

func (x *examination) wrong(format string, args ...any) {
	x.found = append(x.found, fmt.Errorf("gormlock: "+x.name+": "+format, args...))
}

// parse reads the tags.
func (x *examination) parse(value any) {
	stmt := &gorm.Statement{DB: x.db}
	if v := reflect.ValueOf(value); value == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		x.wrong("a nil model")
		return
	}
	if err := stmt.Parse(value); err != nil {
		x.wrong("%w", err)
		return
	}
	x.name = stmt.Schema.Name
	x.db = journal.OnSource(x.db, stmt.Schema.Table)
	x.model = model.OfSchema(x.db, stmt.Schema)
	if x.model.Err != nil {
		x.found = append(x.found, x.model.Err)
	}
}

// column is a column of a table, as the server describes it.
type column struct {
	Name      string `gorm:"column:name"` // fixed, whatever the program's NamingStrategy is, as below
	Type      string `gorm:"column:type"`
	Required  bool   `gorm:"column:required"`  // NOT NULL
	Filled    bool   `gorm:"column:filled"`    // it has a default
	Precision int    `gorm:"column:precision"` // of a time, in digits of a second
	OfView    bool   `gorm:"column:of_view"`   // a view has neither NOT NULL nor defaults to check
	Computed  bool   `gorm:"column:computed"`  // no statement can assign it
	Filling   string `gorm:"column:filling"`   // the expression that fills it
}

// columns checks whether the columns of version and fence exist, and can hold what they must.
func (x *examination) columns() {
	if x.model.Column == nil && x.model.Fence == nil {
		return
	}
	table := x.model.Schema.Table
	if !statement.IsPostgres(x.db) {
		x.columnsByGORM(table)
		return
	}
	if !x.read(table) {
		return
	}
	x.instead(table)
	x.key(table)
	if v := x.model.Column; v != nil && !v.IsSystem() {
		kinds, what := integers, "an integer"
		if v.IsTemporal() {
			kinds, what = times, "a time"
		}
		x.holds(v.Field, table, kinds, what)
		x.ticks(table)
	}
	if f := x.model.Fence; f != nil {
		x.holds(f.Field, table, []string{"int8"}, "a bigint")
	}
	for name := range x.model.Unversioned {
		if x.column(name) == nil {
			x.wrong("the table %s has no column %s, which is tagged `unversioned`", table, name)
		}
	}
}

var (
	integers = []string{"int2", "int4", "int8", "numeric"}
	times    = []string{"timestamptz", "timestamp"}
)

func (x *examination) holds(field *schema.Field, table string, kinds []string, what string) {
	switch c := x.column(field.DBName); {
	case c == nil:
		x.wrong("the table %s has no column %s: migrate it", table, field.DBName)
	case c.Computed:
		x.wrong("the column %s of %s is computed by the server, and no statement can set it: a version and a token need a column of their own", field.DBName, table)
	case !slices.Contains(kinds, c.Type):
		x.wrong("the column %s of %s is of type %s, and has to be %s", field.DBName, table, c.Type, what)
	}
}

// ticks checks whether the column keeps times as exactly as the model says: each write must move the version.
func (x *examination) ticks(table string) {
	v := x.model.Column
	c := x.column(v.Field.DBName)
	if c == nil || !v.IsTemporal() || !slices.Contains(times, c.Type) {
		return
	}
	if tick := time.Second / time.Duration(math.Pow10(c.Precision)); tick > v.Tick {
		x.wrong("the column %s of %s keeps times to %s, and two writes within that would have one version: "+
			"declare `gorm:\"type:%s(%d)\"` in the model, or ALTER TABLE %[2]s ALTER COLUMN %[1]s TYPE %[4]s",
			v.Field.DBName, table, tick, c.Type, c.Precision)
	}
}

func (x *examination) column(name string) *column {
	for i := range x.table {
		if x.table[i].Name == name {
			return &x.table[i]
		}
	}
	return nil
}

// read reads the columns of the table, and reports whether the table exists.
func (x *examination) read(table string) bool {
	found, err := columnsOf(x.db, table)
	switch {
	case err != nil:
		x.wrong("%w", err)
	case found == nil:
		x.wrong("there is no table %s: migrate it", table)
	}
	x.table = found
	return found != nil
}

// instead checks whether the server executes something else instead of an update. Such a statement compares the row as it was when the statement
// began, so if two writers wait for each other, both succeed.
func (x *examination) instead(table string) {
	var does string
	if err := x.db.Raw(`SELECT coalesce((SELECT 'trigger '||tgname FROM pg_trigger WHERE tgrelid = to_regclass(@table) AND tgtype & 64 > 0 AND tgtype & 24 > 0 LIMIT 1),
		(SELECT 'rule '||rulename FROM pg_rewrite WHERE ev_class = to_regclass(@table) AND is_instead AND ev_type IN ('2','4') LIMIT 1), '')`,
		map[string]any{"table": quoted(table)}).Scan(&does).Error; err != nil {
		x.wrong("%w", err)
	} else if does != "" {
		x.wrong("the %s of %s acts instead of an update or delete, and the server compares no version again after a wait: "+
			"give the model the table itself, or lock the row in it first", does, table)
	}
}

// key checks whether the table keeps the model's key unique: a write of one struct must be for one row.
func (x *examination) key(table string) {
	var names []string
	for _, field := range x.model.Schema.PrimaryFields {
		if names = append(names, field.DBName); x.column(field.DBName) == nil {
			x.wrong("the table %s has no column %s, which is the key of the model", table, field.DBName)
			return
		}
	}
	var twice bool
	if err := x.db.Raw(`SELECT c.relkind = 'r' AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
			AND NOT EXISTS (SELECT FROM unnest(i.indkey[0:i.indnkeyatts - 1]) AS part LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = part
				WHERE a.attname IS NULL OR a.attname::text NOT IN @names))
		FROM pg_class c WHERE c.oid = to_regclass(@table)`, map[string]any{"table": quoted(table), "names": names}).Scan(&twice).Error; err != nil {
		x.wrong("%w", err)
	} else if twice {
		x.wrong("the table %s has no unique index on %s, so two rows may have one key, and a write of a struct is one of both: ALTER TABLE %[1]s ADD PRIMARY KEY (%[2]s)",
			table, strings.Join(names, ", "))
	}
}

// columnsOf are the columns of the table that the search_path finds, or nil if there is none.
func columnsOf(db *gorm.DB, table string) (found []column, err error) {
	err = db.Raw(`SELECT a.attname AS name, coalesce(base.typname, t.typname) AS type, a.attnotnull OR t.typnotnull AS required, a.atthasdef OR t.typdefault IS NOT NULL AS filled,
		CASE WHEN coalesce(nullif(a.atttypmod, -1), t.typtypmod) BETWEEN 0 AND 6 THEN coalesce(nullif(a.atttypmod, -1), t.typtypmod) ELSE 6 END AS precision, c.relkind = 'v' AS of_view,
		a.attgenerated <> '' OR a.attidentity <> '' OR c.relkind = 'v' AND NOT pg_column_is_updatable(c.oid, a.attnum, true) AS computed,
		coalesce(pg_get_expr(d.adbin, d.adrelid), t.typdefault, '') AS filling
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type base ON base.oid = t.typbasetype
		WHERE a.attrelid = to_regclass(?) AND a.attnum > 0 AND NOT a.attisdropped`, quoted(table)).Scan(&found).Error
	return found, err
}

// quoted is a table's name as the server reads it.
func quoted(table string) string {
	parts := strings.Split(table, ".")
	for i := range parts {
		parts[i] = statement.QuoteName(strings.Trim(parts[i], `"`))
	}
	return strings.Join(parts, ".")
}

// columnsByGORM does the same on other databases, where tests run.
func (x *examination) columnsByGORM(table string) {
	migrator := x.db.Migrator()
	if !migrator.HasTable(table) {
		x.wrong("there is no table %s: migrate it", table)
		return
	}
	if v := x.model.Column; v != nil && !migrator.HasColumn(table, v.Field.DBName) {
		x.wrong("the table %s has no column %s: migrate it", table, v.Field.DBName)
	}
	if f := x.model.Fence; f != nil && !migrator.HasColumn(table, f.Field.DBName) {
		x.wrong("the table %s has no column %s: migrate it", table, f.Field.DBName)
	}
}

// defaults checks whether rows that other programs insert get a version. A version of Rails can be NULL, which counts as 0.
func (x *examination) defaults() {
	v := x.model.Column
	if v == nil || v.IsSystem() || v.IsRails() || x.table == nil {
		return
	}
	c := x.column(v.Field.DBName)
	if c == nil || c.OfView {
		return
	}
	table, name := x.model.Schema.Table, v.Field.DBName
	first := fmt.Sprint(v.Initial)
	if v.IsTemporal() {
		first = "now()"
	}
	if !c.Required {
		x.wrong("the column %s of %s may be NULL, and a row that has NULL counts as not read: "+
			"UPDATE %[2]s SET %[1]s = %[3]s WHERE %[1]s IS NULL; ALTER TABLE %[2]s ALTER COLUMN %[1]s SET DEFAULT %[3]s, ALTER COLUMN %[1]s SET NOT NULL",
			name, table, first)
	} else if !c.Filled && !v.IsTemporal() && !v.IsHibernate() {
		x.wrong("the column %s of %s has no default, which inserts of other programs need: ALTER TABLE %[2]s ALTER COLUMN %[1]s SET DEFAULT %[3]s", name, table, first)
	} else if n := number.FindStringSubmatch(c.Filling); n != nil && v.IsInteger() {
		if filled, err := strconv.ParseInt(n[1], 10, 64); err == nil && filled < v.Initial {
			x.wrong("the default of the column %s of %s is %d, and a row at that version counts as not read: ALTER TABLE %[2]s ALTER COLUMN %[1]s SET DEFAULT %[4]s; "+
				"UPDATE %[2]s SET %[1]s = %[4]s WHERE %[1]s < %[4]s", name, table, filled, first)
		}
	}
}

// number matches a default that is a number, as the server writes it: 1, '-1'::integer, (0)::bigint.
var number = regexp.MustCompile(`^[(']*(-?\d+)(?:\.0+)?[)']*(?:::[a-z ]+\)?)*$`)

// own checks gormlock's tables: the table of tokens if the model has a fence, and the table of Once if it exists.
func (x *examination) own() {
	if !statement.IsPostgres(x.db) {
		return
	}
	look := func(table, makes string, needed bool, columns ...string) {
		found, err := columnsOf(x.db, table)
		if err != nil {
			x.wrong("%w", err)
			return
		}
		if found == nil && needed {
			x.wrong("there is no table %s: gormlock.MigrateAll makes it, or %s", table, makes)
		}
		for _, name := range columns {
			if found != nil && !slices.ContainsFunc(found, func(c column) bool { return c.Name == name }) {
				x.wrong("the table %s has no column %s: %s", table, name, tables.Cure(table, name))
			}
		}
	}
	if x.model.Fence != nil {
		look(fence.Table, "fence.Migrate", true, "space", "id", "token", "name")
	}
	look("gormlock_once", "gormlock.MigrateOnce", false, "key", "request", "result", "created_at", "expires_at")
}
