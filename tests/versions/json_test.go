package versions_test

import (
	"encoding/json"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// V23: a version in what JSON was decoded to is the one expected, whatever Go type it has there.
func TestV23_VersionsFromJSON(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&stand.Account{}, &stand.RailsTask{}, &stand.TimedTask{}}, versionsFromJSON)
}

func versionsFromJSON(t *testing.T, db *gorm.DB) {
	decode := func(text string, numbers bool) (body map[string]any) {
		d := json.NewDecoder(strings.NewReader(text))
		if numbers {
			d.UseNumber()
		}
		stand.Must(t, d.Decode(&body))
		return body
	}
	for _, numbers := range []bool{false, true} {
		a, r, at := stand.Account{Balance: 1}, stand.RailsTask{State: "a"}, stand.TimedTask{State: "a"}
		stand.Must(t, db.Create(&a).Error)
		stand.Must(t, db.Create(&r).Error)
		stand.Must(t, db.Create(&at).Error)
		stand.Must(t, db.Model(&stand.Account{ID: a.ID}).Updates(decode(`{"balance": 2, "version": 1}`, numbers)).Error)
		stand.MustStale(t, db.Model(&stand.Account{ID: a.ID}).Updates(decode(`{"balance": 3, "version": 1}`, numbers)).Error)
		stand.Equal(t, "the row", stand.Row[stand.Account](t, db, a.ID), stand.Account{ID: a.ID, Balance: 2, Version: 2})
		stand.Must(t, db.Model(&stand.RailsTask{ID: r.ID}).Updates(decode(`{"state": "b", "lock_version": 0}`, numbers)).Error)
		stand.MustStale(t, db.Model(&stand.RailsTask{ID: r.ID}).Updates(decode(`{"state": "c", "lock_version": 0}`, numbers)).Error)
		text, err := json.Marshal(map[string]any{"state": "b", "version": stand.Row[stand.TimedTask](t, db, at.ID).Version})
		stand.Must(t, err)
		stand.Must(t, db.Model(&stand.TimedTask{ID: at.ID}).Updates(decode(string(text), numbers)).Error)
		stand.MustStale(t, db.Model(&stand.TimedTask{ID: at.ID}).Updates(decode(string(text), numbers)).Error)
		for _, odd := range []any{1.5, 1e300, json.Number("1.5"), "2", true} {
			err := db.Model(&stand.Account{ID: a.ID}).Updates(map[string]any{"balance": 9, "version": odd}).Error
			if err == nil || !strings.Contains(err.Error(), "is not a version") {
				t.Errorf("%v: %v", odd, err)
			}
		}
		stand.MustStale(t, db.Clauses(gormlock.ExpectVersion(float64(1))).Model(&stand.Account{ID: a.ID}).Update("balance", 9).Error)
	}
}
