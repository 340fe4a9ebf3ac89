package versions_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A function sets the search_path of a transaction. What was learned of a table of one tenant is not used for that of another: there, it is a view.
func TestPath_setByAFunction(t *testing.T) {
	t.Parallel()
	stand.EachMode(t, func(t *testing.T, opts ...pgtest.Option) {
		db := stand.Versioned(t, []any{&lateCard{}}, opts...)
		var schema string
		stand.MustDo(t, db.Raw("SELECT current_schema()").Scan(&schema))
		stand.MustDo(t, db.Exec(`CREATE TABLE rest (LIKE late_cards INCLUDING ALL)`))
		other := schema + "_other"
		stand.MustDo(t, db.Exec(`DROP SCHEMA IF EXISTS "`+other+`" CASCADE; CREATE SCHEMA "`+other+`"; CREATE VIEW "`+other+`".late_cards AS TABLE rest`))
		t.Cleanup(func() { db.Exec(`DROP SCHEMA IF EXISTS "` + other + `" CASCADE`) })
		stand.MustDo(t, db.Exec("CREATE FUNCTION set_tenant(s text) RETURNS text LANGUAGE sql AS $$ SELECT set_config('search_path', s, true) $$"))
		for range 2 {
			for _, tenant := range []string{schema, other} {
				stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
					if err := tx.Exec("SELECT set_tenant(?)", tenant).Error; err != nil {
						return err
					}
					cards := []lateCard{{ID: 1, DeckID: 1}, {ID: 2, DeckID: 1}}
					if err := tx.Where("id > 0").Delete(&lateCard{}).Error; err != nil {
						return err
					}
					if err := tx.Create(&cards).Error; err != nil {
						return err
					}
					return tx.Save(&cards).Error
				}))
			}
		}
	})
}
