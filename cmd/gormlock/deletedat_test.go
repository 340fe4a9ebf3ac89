package main_test

import (
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

// Appointment is a job with its own column of the same name as GORM's soft delete.
type Appointment struct {
	work.Job
	DeletedAt *time.Time // when the customer asked for it
}

// Flyer is a job that a flag can hide.
type Flyer struct {
	work.Job
	Gone flag `gorm:"not null;default:0"`
}

// flag is 0 in rows that are not deleted, like the flag of GORM's plugin soft_delete.
type flag int

func (flag) QueryClauses(f *schema.Field) []clause.Interface { return []clause.Interface{unset{f}} }

type unset struct{ field *schema.Field }

func (unset) Name() string               { return "" }
func (unset) Build(clause.Builder)       {}
func (unset) MergeClause(*clause.Clause) {}

func (u unset) ModifyStatement(stmt *gorm.Statement) {
	if !stmt.Unscoped {
		stmt.AddClause(clause.Where{Exprs: []clause.Expression{clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: u.field.DBName}, Value: 0}}})
	}
}

// A job that a worker would run is counted, whatever names its table has.
func TestJobs_deletedAtOfItsOwn(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	db := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))
	if err := work.Migrate(db, &Appointment{}); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if err := work.Enqueue(db, &Appointment{DeletedAt: &now}); err != nil {
		t.Fatal(err)
	}
	on(t, dsn, "jobs", "appointments").is(t, 0, "default  1 ")
	change(t, db, "UPDATE appointments SET state = 'dead'")
	on(t, dsn, "jobs", "appointments", "requeue", "1").is(t, 0, "1 job of appointments ready again")

	change(t, db, "COMMENT ON INDEX appointments_work_later IS NULL") // as if work had not made the table
	on(t, dsn, "jobs", "appointments").is(t, 0, "appointments: no job is ready")
}

// A job that a flag hides from workers is not counted.
func TestJobs_leavesOutWhatAFlagHides(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	db := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))
	if err := work.Migrate(db, &Flyer{}); err != nil {
		t.Fatal(err)
	}
	if err := work.Enqueue(db, &Flyer{}, &Flyer{Gone: 1}); err != nil {
		t.Fatal(err)
	}
	on(t, dsn, "jobs", "flyers").is(t, 0, "default  1 ")
}

func change(t *testing.T, db *gorm.DB, text string) {
	t.Helper()
	if err := db.Exec(text).Error; err != nil {
		t.Fatal(err)
	}
}
