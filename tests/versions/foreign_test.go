package versions_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// foreignRow is a row of a table of which a part is elsewhere.
type foreignRow struct {
	ID      int64 `gorm:"autoIncrement:false"`
	Note    string
	Version int64 `gormlock:"version"`
}

// foreignXmin is such a row without a version column.
type foreignXmin struct {
	ID   int64 `gorm:"autoIncrement:false"`
	Note string
	Xmin uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
}

func (foreignXmin) TableName() string { return "foreign_rows" }

// foreign opens a database that is a foreign server of itself, with the table base of one row, and foreign_rows above it.
func foreign(t *testing.T, ddl string) *gorm.DB {
	t.Helper()
	dsn := pgtest.Database(t)
	config, err := pgx.ParseConfig(dsn)
	stand.Must(t, err)
	db := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))
	var there bool
	if stand.MustDo(t, db.Raw("SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'postgres_fdw')").Scan(&there)); !there {
		t.Skip("the server has no postgres_fdw")
	}
	stand.MustDo(t, db.Exec(fmt.Sprintf("CREATE EXTENSION postgres_fdw; CREATE SERVER here FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%d', dbname '%s');"+
		"CREATE USER MAPPING FOR CURRENT_USER SERVER here OPTIONS (user '%s'); CREATE TABLE base (id bigint PRIMARY KEY, note text, version bigint); INSERT INTO base VALUES (1, 'old', 3); ",
		config.Host, config.Port, config.Database, config.User)+ddl))
	return db
}

const (
	foreignPartition = "CREATE TABLE foreign_rows (id bigint, note text, version bigint) PARTITION BY RANGE (id); CREATE FOREIGN TABLE part PARTITION OF foreign_rows DEFAULT SERVER here OPTIONS (table_name 'base')"
	foreignChild     = "CREATE TABLE foreign_rows (id bigint, note text, version bigint); CREATE FOREIGN TABLE part () INHERITS (foreign_rows) SERVER here OPTIONS (table_name 'base')"
	foreignTable     = "CREATE FOREIGN TABLE foreign_rows (id bigint, note text, version bigint) SERVER here OPTIONS (table_name 'base')"
)

// Nobody says who wrote a row of a foreign table. A copy that gorm.G reads in a transaction that wrote such a row counts as not read, so after a
// rollback it overwrites nothing.
func TestForeignRow_readByG(t *testing.T) {
	t.Parallel()
	for name, ddl := range map[string]string{"a partition": foreignPartition, "a child": foreignChild, "a table": foreignTable} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := foreign(t, ddl)
			var copied foreignRow
			if err := db.Transaction(func(tx *gorm.DB) error {
				var row foreignRow
				stand.MustDo(t, tx.First(&row))
				stand.MustDo(t, tx.Model(&row).Update("note", "discarded"))
				var err error
				copied, err = gorm.G[foreignRow](tx).First(t.Context())
				return errors.Join(err, errUndone)
			}); !errors.Is(err, errUndone) {
				t.Fatal(err)
			}
			stand.MustDo(t, db.Exec("UPDATE base SET note = 'rival', version = version + 1"))
			if err := db.Save(&copied).Error; err == nil {
				t.Error("another writer's row is overwritten")
			}
		})
	}
}

// Rows of a foreign table have no xmin. The error says so.
func TestForeignRow_hasNoXmin(t *testing.T) {
	t.Parallel()
	for name, ddl := range map[string]string{"a partition": foreignPartition, "a child": foreignChild, "a table": foreignTable} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := foreign(t, ddl)
			var row foreignXmin
			stand.MustDo(t, db.First(&row))
			for how, err := range map[string]error{
				"update": db.Model(&row).Update("note", "mine").Error,
				"save":   db.Save(&row).Error,
				"slice":  db.Model([]*foreignXmin{&row}).Update("note", "mine").Error,
				"delete": db.Delete(&row).Error,
			} {
				if err == nil || !strings.Contains(err.Error(), "give the model a version column") {
					t.Errorf("%s: %v", how, err)
				}
			}
		})
	}
}
