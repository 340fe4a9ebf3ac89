package migrate

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"

	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/tables"
)

// VersionTrigger is the DDL of a trigger that moves the version of a table where its writer does not. The function is in the
// schema that is given with the table.
func VersionTrigger(table, column string) string {
	parts := strings.Split(table, ".")
	last := len(parts) - 1
	name := statement.QuoteName(triggerName(parts[last], column))
	for i := range parts {
		parts[i] = statement.QuoteName(parts[i])
	}
	on, version := strings.Join(parts, "."), statement.QuoteName(column)
	parts[last] = name
	function := strings.Join(parts, ".")
	body := tables.DollarQuoted(fmt.Sprintf(`
BEGIN
  IF NEW.%[1]s IS NULL OR NEW.%[1]s <= OLD.%[1]s THEN
    NEW.%[1]s := COALESCE(OLD.%[1]s, 0) + CASE WHEN OLD.%[1]s = -2 THEN 2 ELSE 1 END;
  END IF;
  RETURN NEW;
END `, version))
	// The text begins with no SELECT: dbresolver would send all of it to a replica.
	return fmt.Sprintf(`DO $$ BEGIN PERFORM pg_advisory_xact_lock(%[5]d); END $$;
CREATE OR REPLACE FUNCTION %[1]s() RETURNS trigger LANGUAGE plpgsql AS %[2]s;
DROP TRIGGER IF EXISTS %[3]s ON %[4]s;
CREATE TRIGGER %[3]s BEFORE UPDATE ON %[4]s FOR EACH ROW EXECUTE FUNCTION %[1]s();
`, function, body, name, on, lockOfTriggers)
}

const (
	triggerPrefix = "gormlock_version_" // package work looks for it too

	// lockOfTriggers is the advisory lock under which triggers are created: the server fails some of the programs that replace a
	// function at once.
	lockOfTriggers = 7452331120164530000
)

var (
	words = regexp.MustCompile(`^[a-z0-9]+(_[a-z0-9]+)*$`)
	odd   = regexp.MustCompile(`[^a-z0-9]+`)
)

// triggerName is that of the trigger and of its function. No other column of the schema has it: two underscores stand in
// front of a column, and three in front of the hash that is in the name where one of the two names holds more than words,
// or both are too long.
func triggerName(table, column string) string {
	name := triggerPrefix + table
	if column != "version" {
		name += "__" + column
	}
	if len(name) <= statement.LongestName && words.MatchString(table) && words.MatchString(column) {
		return name
	}
	sum := fmt.Sprintf("___%x", sha256.Sum256([]byte(table+"\x00"+column)))[:3+16]
	begin := triggerPrefix + odd.ReplaceAllString(strings.ToLower(table), "_")
	return begin[:min(len(begin), statement.LongestName-len(sum))] + sum
}
