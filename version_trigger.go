package gormlock

import (
	"fmt"
	"strings"
)

// VersionTrigger returns the DDL of a trigger that moves the integer version column of a table in every update that
// does not do so itself: for writers that know nothing of versions, such as psql, scripts and bulk statements of other
// programs. Writers that move the version, as gormlock, Rails and Hibernate do, are left alone; not so their updates that
// leave it alone on purpose, of unversioned columns or with [PreserveVersion]: those move it too, and the writer's struct is
// stale then. Run it again and it is replaced. The table may be written with its schema.
func VersionTrigger(table, column string) string {
	parts := strings.Split(table, ".")
	for i := range parts {
		parts[i] = quoteIdent(parts[i])
	}
	name := quoteIdent("gormlock_version_" + strings.ReplaceAll(table, ".", "_"))
	function := name
	if len(parts) > 1 {
		function = parts[0] + "." + name
	}
	on, version := strings.Join(parts, "."), quoteIdent(column)
	return fmt.Sprintf(`CREATE OR REPLACE FUNCTION %[1]s() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.%[2]s IS NOT DISTINCT FROM OLD.%[2]s THEN
    NEW.%[2]s := COALESCE(OLD.%[2]s, 0) + 1;
  END IF;
  RETURN NEW;
END $$;
DROP TRIGGER IF EXISTS %[3]s ON %[4]s;
CREATE TRIGGER %[3]s BEFORE UPDATE ON %[4]s FOR EACH ROW EXECUTE FUNCTION %[1]s();
`, function, version, name, on)
}

func quoteIdent(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}
