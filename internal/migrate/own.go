package migrate

import (
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/tables"
	"github.com/gormlock/gormlock/internal/xact"
)

// Own makes the tables of gormlock, all or none, and brings those of an earlier version up to date.
func Own(db *gorm.DB, once string) error {
	if err := usable(db, "MigrateAll"); err != nil {
		return err
	}
	if err := mark.RefuseGiven(db, "MigrateAll", "it makes all tables of gormlock: give it the db or the transaction itself", mark.Ours, mark.Scopes); err != nil {
		return err
	}
	return statement.Nested(journal.OnNamed(db), func(tx *gorm.DB) error {
		if err := xact.AcquireAsked(tx); err != nil {
			return fmt.Errorf("gormlock: MigrateAll, nothing was changed: %w", fault.Because(err))
		}
		tx = tx.Session(&gorm.Session{NewDB: true})
		for _, table := range tables.Own(once) {
			if err := tx.Exec(table.Migration()).Error; err != nil {
				return fmt.Errorf("gormlock: MigrateAll, nothing was changed: table %s: %w", table.Name, err)
			}
			if err := fits(tx, table); err != nil {
				return err
			}
		}
		return nil
	})
}

// fits says why a table that was there cannot serve: it lacks a column, or one refuses or takes NULL, or has no default. The types are
// for gormlock doctor.
func fits(tx *gorm.DB, table tables.Table) error {
	if tx.DryRun {
		return nil
	}
	oid := "(SELECT oid FROM pg_class WHERE oid = to_regclass('" + table.Name + "') AND relkind IN ('r', 'p'))" // a view says nothing of its columns
	rows, err := tx.Raw(strings.Replace(tables.ColumnsOf, "$1", oid, 1)).Rows()
	if err != nil {
		return fmt.Errorf("gormlock: MigrateAll, nothing was changed: look at table %s: %w", table.Name, err)
	}
	defer func() { _ = rows.Close() }() // Err says what went wrong
	var found []tables.Column
	for rows.Next() {
		var c tables.Column
		if err := rows.Scan(&c.Name, &c.Type, &c.NotNull, &c.Default); err != nil {
			return err
		}
		found = append(found, c)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, c := range table.Columns() {
		if len(found) > 0 && !slices.ContainsFunc(found, func(is tables.Column) bool { return is.Name == c.Name }) {
			return fmt.Errorf("gormlock: MigrateAll, nothing was changed: table %s has no column %s: %s", table.Name, c.Name, table.Cure(c.Name))
		}
	}
	for _, d := range table.Deviations(found) {
		if !d.IsType {
			return fmt.Errorf("gormlock: MigrateAll, nothing was changed: table %s: its column %s %s: gormlock doctor --fix shows how to mend it", table.Name, d.Column, d.Says)
		}
	}
	return nil
}
