package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	harbour struct {
		ID      int64
		Name    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	vessel struct {
		ID        int64
		HarbourID *int64
		Harbour   *harbour `gorm:"constraint:-"`
		Version   int64    `gorm:"not null;default:1" gormlock:"version"`
	}
)

// What a table is like in one database says nothing of the table of its name in another one, or in another schema.
func TestTables_ofTwoDatabases(t *testing.T) {
	t.Parallel()
	plugin := gormlock.New()
	t.Cleanup(func() { _ = plugin.Close() })
	db := pgtest.Open(t, pgtest.Plugin(plugin), pgtest.Schema())
	stand.Must(t, db.AutoMigrate(&harbour{}, &vessel{}))
	var schema string
	stand.Must(t, db.Raw("SELECT current_schema() || '_there'").Scan(&schema).Error)
	there := pgtest.Open(t, pgtest.Plugin(plugin), pgtest.Param("search_path", schema))
	plain := stand.Open(t)
	stand.Must(t, plain.Exec("CREATE SCHEMA "+schema).Error)
	t.Cleanup(func() { stand.Must(t, plain.Exec("DROP SCHEMA "+schema+" CASCADE").Error) })
	for _, text := range []string{ // the key is no unique index of its own there, and the vessels are a view
		"CREATE TABLE %.harbours (id bigserial, name text, version bigint NOT NULL DEFAULT 1, PRIMARY KEY (id, name)) PARTITION BY LIST (name)",
		"CREATE TABLE %.harbours_all PARTITION OF %.harbours DEFAULT",
		"CREATE TABLE %.kept (id bigserial PRIMARY KEY, harbour_id bigint, version bigint NOT NULL DEFAULT 1)",
		"CREATE VIEW %.vessels AS TABLE %.kept",
		"ALTER VIEW %.vessels ALTER id SET DEFAULT nextval('%.kept_id_seq'), ALTER version SET DEFAULT 1",
	} {
		stand.Must(t, plain.Exec(strings.ReplaceAll(text, "%", schema)).Error)
	}
	write := func(id int64) func(tx *gorm.DB) error {
		return func(tx *gorm.DB) error {
			v := vessel{Harbour: &harbour{ID: id, Name: "a"}}
			if err := tx.Create(&v).Error; err != nil {
				return err
			}
			_, err := gorm.G[vessel](tx).Where("id = ?", v.ID).First(t.Context())
			return err
		}
	}
	for i := range int64(2) {
		stand.Must(t, db.Transaction(write(10+i)))
		stand.Must(t, there.Transaction(write(10+i)))
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, tx.Exec("SET LOCAL search_path TO "+schema).Error)
			return write(20 + i)(tx)
		}))
	}
}
