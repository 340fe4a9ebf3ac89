package versions_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestZeroTime: a row at the first moment of the year 1 has a version of time, and a struct with the zero time was not read. A write of one to the
// other is refused, whatever conditions the caller has.
func TestZeroTime(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&stand.TimedTask{}}, func(t *testing.T, db *gorm.DB) {
		stand.MustDo(t, db.Exec("INSERT INTO timed_tasks (id, state, version) VALUES (1, 'ready', '0001-01-01 00:00:00+00:00')"))
		for name, write := range map[string]func(task stand.TimedTask) error{
			"G": func(task stand.TimedTask) error {
				return stand.ErrorOf(gorm.G[stand.TimedTask](db).Where("id = ?", 1).Select("state").Updates(t.Context(), task))
			},
			"Save":         func(task stand.TimedTask) error { return db.Save(&task).Error },
			"Update":       func(task stand.TimedTask) error { return db.Model(&task).Update("state", "new").Error },
			"Update where": func(task stand.TimedTask) error { return db.Model(&task).Where("id > 0").Update("state", "new").Error },
			"Delete where": func(task stand.TimedTask) error { return db.Where("id > 0").Delete(&task).Error },
		} {
			if err := write(stand.TimedTask{ID: 1, State: "new"}); !errors.Is(err, gormlock.ErrVersionMissing) {
				t.Errorf("%s: %v", name, err)
			}
		}
		stand.Equal(t, "state", stand.Row[stand.TimedTask](t, db, 1).State, "ready")
	})
}
