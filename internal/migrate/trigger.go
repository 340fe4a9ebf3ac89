package migrate

import (
	"fmt"
	"strings"

	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/tables"
)

// VersionTrigger is the DDL of a trigger that moves the version of a table where its writer does not.
func VersionTrigger(table, column string) string {
	parts := strings.Split(table, ".")
	for i := range parts {
		parts[i] = statement.QuoteName(parts[i])
	}
	name := statement.QuoteName("gormlock_version_" + strings.ReplaceAll(table, ".", "_"))
	function := name
	if len(parts) > 1 {
		function = parts[0] + "." + name
	}
	on, version := strings.Join(parts, "."), statement.QuoteName(column)
	body := tables.DollarQuoted(fmt.Sprintf(`
BEGIN
  IF NEW.%[1]s IS NULL OR NEW.%[1]s <= OLD.%[1]s THEN
    NEW.%[1]s := COALESCE(OLD.%[1]s, 0) + 1;
  END IF;
  RETURN NEW;
END `, version))
	return fmt.Sprintf(`CREATE OR REPLACE FUNCTION %[1]s() RETURNS trigger LANGUAGE plpgsql AS %[2]s;
DROP TRIGGER IF EXISTS %[3]s ON %[4]s;
CREATE TRIGGER %[3]s BEFORE UPDATE ON %[4]s FOR EACH ROW EXECUTE FUNCTION %[1]s();
`, function, body, name, on)
}
