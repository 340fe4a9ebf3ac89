package work

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/jobmark"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/statement"
)

// Migrate creates the table of a model, or adds what it lacks: columns, the indexes of claims, and the settings with
// which the server keeps it clean. Of the options it uses [OnePer] and [FairBy]. It does everything or nothing, in one
// transaction, one process at a time. It changes nothing that exists, except the comments on its own indexes. It refuses a table that was made
// by other means and cannot work, and [OnePer] while two jobs of one value run. While an index is added to a table with rows, writers wait.
func Migrate(db *gorm.DB, model any, opts ...Option) error {
	if err := install.Usable(db); err != nil {
		return err
	}
	if err := mustBeBare(db, "Migrate", "give it the db or the transaction itself, and take locks with gormlock.AcquireXactLock"); err != nil {
		return err
	}
	c, err := newConfig(opts)
	if err != nil {
		return err
	}
	t, err := tableOf(db, model)
	if err != nil {
		return err
	}
	if t, err = t.with(c); err != nil {
		return err
	}
	return gormlock.Transaction(db, func(tx *gorm.DB) error {
		if err := tx.AutoMigrate(model); err != nil {
			return fmt.Errorf("gormlock: work: migrate %s: %w", t.name, err)
		}
		set, err := t.fit(tx)
		if err != nil {
			return err
		}
		for _, text := range slices.Concat(t.ddl(), t.storage(set), t.marks()) {
			if err := tx.Exec(text).Error; err != nil {
				return t.migrateError(text, err)
			}
		}
		return nil
	}, gormlock.Locking(gormlock.Key("gormlock", "work", "migrate", t.name), gormlock.AllowSnapshot()))
}

// migrateError adds the cure if the reason is known for which the server refuses a text.
func (t *table) migrateError(text string, err error) error {
	isDuplicate := sqlstate.Is(err, sqlstate.UniqueViolation) || errors.Is(err, gorm.ErrDuplicatedKey) // GORM may translate the error
	if isDuplicate && strings.HasPrefix(text, "CREATE UNIQUE INDEX") {
		return fmt.Errorf("gormlock: work: migrate %s: two jobs of one %s run now, and OnePer lets one run at a time: stop the workers, or wait until one of the jobs has ended, and call Migrate again: %w",
			t.name, t.one, err)
	}
	return fmt.Errorf("gormlock: work: migrate %s: %w", t.name, err)
}

// fit refuses a table that cannot work, and returns which storage settings the table has. In a dry run it checks nothing.
func (t *table) fit(tx *gorm.DB) (set []string, err error) {
	if tx.DryRun {
		return nil, nil
	}
	for _, refuse := range []func(*gorm.DB) error{t.refuseColumns, t.refuseTrigger, t.refuseIndexesElsewhere} {
		if err := refuse(tx); err != nil {
			return nil, err
		}
	}
	if err := tx.Raw("SELECT split_part(unnest(reloptions), '=', 1) FROM pg_class WHERE oid = to_regclass(?)", t.quoted).Scan(&set).Error; err != nil {
		return nil, fmt.Errorf("gormlock: work: migrate %s: %w", t.name, err)
	}
	return set, nil
}

// quotedIndex returns the name of an index, with the schema that the name of the table has.
func (t *table) quotedIndex(name string) string {
	schema := ""
	if at := strings.LastIndexByte(t.quoted, '.'); at >= 0 {
		schema = t.quoted[:at+1]
	}
	return schema + statement.QuoteName(name)
}

// marks are the comments on indexes that let other parts of gormlock find the table, and know what counts as deleted in it.
func (t *table) marks() []string {
	comment := func(on index, literal string) string {
		return "COMMENT ON INDEX " + t.quotedIndex(on.name) + " IS " + literal
	}
	return []string{comment(t.want[0], "'"+jobmark.Of(t.fields.ModelType)+"'"), comment(t.want[1], jobmark.HiddenBy(t.hidden))}
}

// ddl is the DDL that AutoMigrate does not do.
func (t *table) ddl() []string {
	texts := make([]string, 0, len(t.want))
	for _, want := range t.want {
		unique := ""
		if want.unique {
			unique = "UNIQUE "
		}
		texts = append(texts, fmt.Sprintf("CREATE %sINDEX IF NOT EXISTS %s ON %s %s", unique, statement.QuoteName(want.name), t.quoted, want.on))
	}
	return texts
}

// storage gives the table the storage settings that it lacks. The next version of a claimed row finds room on its page. A busy queue is vacuumed
// after a number of changed rows, and not after a share of the table, which may be full of old jobs.
func (t *table) storage(set []string) []string {
	var missing []string
	for _, setting := range []string{
		"fillfactor = 70", "autovacuum_vacuum_scale_factor = 0", "autovacuum_vacuum_threshold = 5000",
		"autovacuum_analyze_scale_factor = 0.02", "autovacuum_analyze_threshold = 5000", "autovacuum_vacuum_cost_delay = 0",
	} {
		if name, _, _ := strings.Cut(setting, " "); !slices.Contains(set, name) {
			missing = append(missing, setting)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []string{"ALTER TABLE " + t.quoted + " SET (" + strings.Join(missing, ", ") + ")"}
}
