package lease

import (
	"context"
	"fmt"
	"strings"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/newtable"
	"github.com/gormlock/gormlock/internal/otherdb"
	"github.com/gormlock/gormlock/internal/tables"
)

// Schema is the DDL of the table of leases, for those who keep their own migrations. The
// table of package fence belongs to it: fence.Schema. A row is never deleted here; one
// whose expires_at has passed may be deleted at any time.
//
// Half of each page is left free and no index holds expires_at. So a renewal is
// written on the page of the row that it replaces, and nothing grows.
const Schema = tables.Lease

// lockOfTables is the advisory lock under which the tables are created.
const lockOfTables = 7452331120164529998

// Migrate creates the tables of the leases, of the fencing tokens and of the schedules, each if the search_path
// finds none. Give it the options of [New]: only [Table] and [ShedLock] matter here. Any number of programs may
// call it at once. On failure a table may have been created, and the call may be repeated. On another database than
// PostgreSQL it is advisory.ErrNotPostgres, and none was.
func Migrate(ctx context.Context, db fence.Execer, opts ...Option) error {
	c, err := newConfig(opts)
	if err != nil {
		return err
	}
	if other := otherdb.Under(db); other != nil {
		return other.Refusal("create table "+c.tableName(), nil)
	}
	if err := fence.Migrate(ctx, db); err != nil {
		return err
	}
	table := c.quotedTable()
	ddl := strings.Replace(Schema, "gormlock_lease", table, 1)
	if c.shedlock {
		ddl = strings.Replace(shedlockSchema, "shedlock", table, 1)
	}
	leases := newtable.Table{Name: c.tableName(), Quoted: table, DDL: ddl, Lock: lockOfTables}
	if err := leases.Create(ctx, db); err != nil {
		return err
	}
	return newtable.Table{Name: "gormlock_schedule", Quoted: "gormlock_schedule", DDL: ScheduleSchema, Lock: lockOfTables}.Create(ctx, db)
}

// migration names the call that creates the table, for error texts.
func (c *config) migration() string {
	var options []string
	if c.shedlock {
		options = append(options, "lease.ShedLock()")
	}
	if c.table != "" {
		options = append(options, fmt.Sprintf("lease.Table(%q)", c.table))
	}
	if options == nil {
		return "lease.Migrate creates it"
	}
	return "lease.Migrate creates it, given the same " + strings.Join(options, " and ")
}
