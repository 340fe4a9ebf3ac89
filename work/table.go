package work

import (
	"fmt"
	"hash/crc32"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/jobmark"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

// table is the table of the jobs of one model.
type table struct {
	name   string // for people
	quoted string
	fields *schema.Schema
	pairs  []string // names in texts, each followed by its replacement, without {live}
	names  *strings.Replacer
	hidden []jobmark.Hidden // fields that hide rows from queries
	denied error            // the error of a field that refuses queries in this context, see allowed
	one    string           // the column of OnePer, quoted, or ""
	fair   string           // the column of FairBy, quoted, or ""
	want   []index
}

// index is an index that claims need.
type index struct {
	name   string
	unique bool
	on     string // columns and condition
	option string // the option that needs it, or ""
}

// mustBePostgres refuses databases on which work does not run.
func mustBePostgres(db *gorm.DB) error {
	if !statement.IsPostgres(db) {
		return fmt.Errorf("%w, not %s: work", fault.ErrNotPostgres, db.Name())
	}
	return nil
}

// tableOf returns the table of a model, under the context of db.
func tableOf(db *gorm.DB, model any) (*table, error) {
	t, err := tableOfAll(db, model)
	if err != nil {
		return nil, err
	}
	pool := db.ConnPool
	if statement.Transaction(db.Statement) != nil {
		pool = db.Statement.ConnPool
	}
	if err := journal.RefuseElsewhere(db, "work", t.name, pool); err != nil {
		return nil, err
	}
	return t.under(db)
}

// tableOfAll returns the table with all its rows. It does not depend on the context.
func tableOfAll(db *gorm.DB, model any) (*table, error) {
	if _, err := jobIn(model); err != nil {
		return nil, err
	}
	if err := mustBePostgres(db); err != nil {
		return nil, err
	}
	settings := install.Of(db)
	if settings.WithoutVersions {
		return nil, optionError("the plugin was installed with WithoutVersions, and the version is what keeps a job that was taken over from being completed twice")
	}
	stmt := &gorm.Statement{DB: db}
	if err := stmt.Parse(model); err != nil {
		return nil, err
	}
	s := stmt.Schema
	if known, ok := settings.Jobs.Load(s); ok {
		return known.(*table), nil //nolint:forcetypeassert // stored below
	}
	if len(s.PrimaryFields) != 1 || s.PrimaryFields[0].Name != "ID" {
		return nil, optionError("%s has another primary key beside Job's ID", s.Name)
	}
	if err := mustOwnItsFields(stmt, s); err != nil {
		return nil, err
	}
	for _, name := range append([]string{s.Table}, s.DBNames...) {
		if strings.Contains(name, "?") {
			return nil, optionError("%s: the name %q has a question mark, which GORM takes for a placeholder: give it another", s.Name, name)
		}
	}
	t := &table{name: s.Table, quoted: stmt.Quote(s.Table), fields: s}
	t.pairs = []string{"{table}", t.quoted}
	for _, f := range s.Fields {
		if f.DBName != "" {
			t.pairs = append(t.pairs, "{"+f.Name+"}", stmt.Quote(f.DBName))
		}
	}
	t.names = strings.NewReplacer(append(slices.Clone(t.pairs), "{live}", "")...)
	t.want = []index{
		{name: t.index("ready"), on: t.sql("({Queue}, {Priority} DESC, ({ID} + 0)) WHERE {State} = 'ready'")},
		{name: t.index("later"), on: t.sql("({RunAt}) WHERE {State} = 'later'")},
		{name: t.index("running"), on: t.sql("({ClaimedUntil}) WHERE {State} = 'running'")},
		{name: t.index("dead"), on: t.sql("({Queue}, {ID}) WHERE {State} = 'dead'")},
	}
	settings.Jobs.Store(s, t)
	return t, nil
}

// mustOwnItsFields refuses a model with a field that has the name or the column of a field of Job: workers would read and write that one.
func mustOwnItsFields(stmt *gorm.Statement, s *schema.Schema) error {
	row := reflect.New(s.ModelType)
	its, err := jobIn(row.Interface())
	if err != nil {
		return err
	}
	j := reflect.ValueOf(its).Elem()
	for i := range j.NumField() {
		name := j.Type().Field(i).Name
		f := s.FieldsByName[name]
		if f == nil || s.FieldsByDBName[f.DBName] != f || f.ReflectValueOf(stmt.Context, row.Elem()).Addr().Pointer() != j.Field(i).Addr().Pointer() {
			return optionError("%s has a field of its own with the name or the column of Job's %s: give it others", s.Name, name)
		}
	}
	return nil
}

// with returns the table with what OnePer and FairBy need.
func (t *table) with(c *config) (_ *table, err error) {
	own := *t
	t = &own
	t.want = slices.Clone(t.want)
	if c.one != "" {
		if t.one, err = t.option("OnePer", c.one); err != nil {
			return nil, err
		}
		t.want = append(t.want,
			index{name: t.index("one_" + c.one), on: "(" + t.one + t.sql(", {ID}) WHERE ") + t.waiting(), option: "OnePer"},
			index{name: t.index("one_running_" + c.one), unique: true, on: "(" + t.one + t.sql(") WHERE {State} = 'running'"), option: "OnePer"})
	}
	if c.fair != "" {
		if t.fair, err = t.option("FairBy", c.fair); err != nil {
			return nil, err
		}
		if t.one == "" {
			t.want = append(t.want, index{name: t.index("fair_" + c.fair), on: "(" + t.fair + t.sql(", {Priority} DESC, ({ID} + 0)) WHERE {State} = 'ready'"), option: "FairBy"})
		}
	}
	return t, nil
}

func (t *table) option(name, column string) (string, error) {
	f := t.fields.LookUpField(column)
	if f == nil || f.DBName == "" {
		return "", optionError("%s(%q): %s has no such column", name, column, t.fields.Name)
	}
	return t.sql("{" + f.Name + "}"), nil
}

// index returns the name of an index of the table. It shortens a name that PostgreSQL would cut.
func (t *table) index(of string) string {
	name := t.name[strings.LastIndexByte(t.name, '.')+1:] + "_work_" + of
	if len(name) > 63 {
		begins := name[:54]
		for !utf8.ValidString(begins) { // not in the middle of a letter
			begins = begins[:len(begins)-1]
		}
		name = fmt.Sprintf("%s_%08x", begins, crc32.ChecksumIEEE([]byte(name)))
	}
	return name
}

// sql replaces names in a text: {Queue} is the column of that field of Job, {table} the table, and {live} a condition that excludes the rows that
// queries do not find, such as soft-deleted ones. The table can have any name. So each WITH in a text has a name that begins with gormlock_, and
// {table} has an alias wherever the text has other aliases.
func (t *table) sql(text string) string { return t.names.Replace(text) }

// waiting is the condition that a job is neither claimed nor finished. Its index has no entries for running jobs: at most one job of a value runs,
// and another index finds it.
func (t *table) waiting() string { return t.sql("{State} IN ('ready', 'later')") }

// after is the ID of the job of OnePer that comes next when the job of the row t, which runs, has ended. It does not look for an older job that was
// committed late or is requeued: the next list has that one.
func (t *table) after() string {
	if t.one == "" {
		return "NULL::bigint"
	}
	return t.sql("(SELECT o.{ID} FROM {table} AS o WHERE ") + t.waiting() + t.sql("{live} AND o.") + t.one + " = t." + t.one + t.sql(" AND o.{ID} > t.{ID} ORDER BY o.") + t.one + t.sql(", o.{ID} LIMIT 1)")
}

func (t *table) column(field string) string { return t.fields.LookUpField(field).DBName }

// invalid follows the names of indexes that the server does not use.
const invalid = " (invalid)"

// check returns an error that says what the database lacks.
func (t *table) check(db *gorm.DB) error {
	cure := "call work.Migrate"
	var relation *string
	db = journal.OnSource(db, t.name)
	if err := db.Raw("SELECT to_regclass(?)::text", t.quoted).Scan(&relation).Error; err != nil {
		return err
	}
	if relation == nil {
		return fmt.Errorf("gormlock: work: the table %s does not exist: %s", t.name, cure)
	}
	var columns, indexes []string
	err := db.Raw("SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped", t.quoted).Scan(&columns).Error
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, name := range columns {
		there[name] = true
	}
	for _, f := range t.fields.Fields {
		if f.DBName != "" && !f.IgnoreMigration && !there[f.DBName] {
			return fmt.Errorf("gormlock: work: the table %s has no column %s: %s", t.name, f.DBName, cure)
		}
	}
	for _, refuse := range []func(*gorm.DB) error{t.refuseColumns, t.refuseTrigger} {
		if err := refuse(db); err != nil {
			return err
		}
	}
	err = db.Raw("SELECT c.relname || CASE WHEN i.indisvalid THEN '' ELSE ? END FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = to_regclass(?)", invalid, t.quoted).Scan(&indexes).Error
	if err != nil {
		return err
	}
	clear(there)
	for _, name := range indexes {
		there[name] = true
	}
	for _, want := range t.want {
		if there[want.name+invalid] {
			return fmt.Errorf("gormlock: work: the index %s is not valid, as CREATE INDEX CONCURRENTLY leaves one that it could not build: drop it, and %s", t.quotedIndex(want.name), cure)
		}
		if !there[want.name] && want.option != "" {
			return fmt.Errorf("gormlock: work: the table %s has no index for %s: %s with the same %s", t.name, want.option, cure, want.option)
		}
		if !there[want.name] {
			return fmt.Errorf("gormlock: work: the table %s has no index %s: %s", t.name, want.name, cure)
		}
		delete(there, want.name)
	}
	if err := t.refuseComposite(db); err != nil {
		return err
	}
	var single []string
	err = db.Raw(`SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		WHERE i.indrelid = to_regclass(?) AND i.indisunique AND pg_get_expr(i.indpred, i.indrelid) LIKE '%''running''%'`, t.quoted).Scan(&single).Error
	for _, name := range single {
		if there[name] {
			return optionError("the table %s has the index %s: name its OnePer here too, or drop the index", t.name, name)
		}
	}
	return err
}

// refuseComposite refuses OnePer and FairBy of a column of a composite type. A composite value with some NULL fields is neither NULL nor NOT NULL,
// so its jobs would be left out.
func (t *table) refuseComposite(db *gorm.DB) error {
	var composite []string
	err := db.Raw(`SELECT a.attname FROM pg_attribute a JOIN pg_type y ON y.oid = a.atttypid
		WHERE a.attrelid = to_regclass(?) AND y.typtype = 'c' AND '"' || replace(a.attname, '"', '""') || '"' IN ?`, t.quoted, []string{t.one, t.fair}).Scan(&composite).Error
	if err == nil && len(composite) > 0 {
		err = optionError("OnePer and FairBy cannot use the column %s of the table %s: its type is a composite one", composite[0], t.name)
	}
	return err
}
