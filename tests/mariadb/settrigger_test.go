package mariadb_test

import (
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type fleet struct {
	ID    int64
	Boats []boat
}

type boat struct {
	ID, FleetID int64
	Note        string `gorm:"size:100"`
	Version     int64  `gormlock:"version"`
}

// A trigger before an insert changes VALUES(version). The version is compared all the same, and no row is stored again.
func TestUpsert_whereATriggerSetsTheVersion(t *testing.T) {
	t.Parallel()
	for name, config := range map[string][]mariaserver.Option{"MariaDB": nil, "like MySQL": {stand.LikeMySQL}} {
		for _, body := range []string{"1", "100", "UNIX_TIMESTAMP()"} {
			t.Run(name+" "+body, func(t *testing.T) {
				t.Parallel()
				db := mariaserver.Open(t, []any{&fleet{}, &boat{}}, config...)
				db.Logger = logger.Discard
				stand.MustDo(t, db.Create(&[]fleet{{ID: 1}, {ID: 2}}))
				stand.MustDo(t, db.Exec("CREATE TRIGGER boats_set BEFORE INSERT ON boats FOR EACH ROW SET NEW.version = "+body))
				for how, write := range map[string]func(rows []boat) error{
					"Save":   func(rows []boat) error { return db.Save(&rows).Error },
					"Append": func(rows []boat) error { return db.Model(&fleet{ID: 2}).Association("Boats").Append(&rows) },
				} {
					for _, n := range []int{1, 3, 200} {
						setBoats(t, db, fmt.Sprintf("%s of %d", how, n), n, write)
					}
				}
			})
		}
	}
}

func setBoats(t *testing.T, db *gorm.DB, what string, n int, write func(rows []boat) error) {
	t.Helper()
	read := func() (rows []boat) {
		stand.MustDo(t, db.Find(&rows))
		for i := range rows {
			rows[i].Note = "mine"
		}
		return rows
	}
	written := func() (n int64) {
		stand.MustDo(t, db.Model(&boat{}).Where("note = 'mine' OR fleet_id = 2").Count(&n))
		return n
	}
	for _, rival := range []string{"", "UPDATE boats SET version = version + 1 WHERE id = 1", "DELETE FROM boats WHERE id = 1"} {
		stand.MustDo(t, db.Exec("DELETE FROM boats"))
		for i := range n {
			stand.MustDo(t, db.Exec("INSERT INTO boats(id, fleet_id) VALUES (?, 1)", i+1))
			stand.MustDo(t, db.Exec("UPDATE boats SET version = ? WHERE id = ?", 5+i%7, i+1))
		}
		rows := read()
		if rival != "" {
			stand.MustDo(t, db.Exec(rival))
		}
		err := write(rows)
		var there int64
		stand.MustDo(t, db.Model(&boat{}).Count(&there))
		switch {
		case rival == "" && (err != nil || written() != int64(n)):
			t.Errorf("%s: %v, %d are written", what, err, written())
		case rival != "" && (err == nil || stand.FromServer(err) || written() > 0):
			t.Errorf("%s, %s: %v, %d are written", what, rival, err, written())
		case rival[:min(6, len(rival))] == "UPDATE" && !errors.Is(err, gormlock.ErrStale):
			t.Errorf("%s, %s: %v", what, rival, err)
		case rival[:min(6, len(rival))] == "DELETE" && there == int64(n):
			t.Errorf("%s: the row is there again", what)
		}
	}
}

// A trigger may leave a child where it was.
func TestAssociation_whereATriggerKeepsTheChild(t *testing.T) {
	t.Parallel()
	for _, config := range [][]mariaserver.Option{nil, {stand.LikeMySQL}} {
		db := mariaserver.Open(t, []any{&fleet{}, &boat{}}, config...)
		stand.MustDo(t, db.Create(&fleet{ID: 1, Boats: []boat{{ID: 1}}}))
		stand.MustDo(t, db.Create(&fleet{ID: 2}))
		stand.MustDo(t, db.Exec("CREATE TRIGGER boats_keep BEFORE UPDATE ON boats FOR EACH ROW SET NEW.fleet_id = OLD.fleet_id"))
		b := stand.Row[boat](t, db, 1)
		if err := db.Model(&fleet{ID: 2}).Association("Boats").Append(&b); err == nil || stand.FromServer(err) {
			t.Errorf("it is appended: %v", err)
		}
		stand.Equal(t, "the row", stand.Row[boat](t, db, 1), boat{ID: 1, FleetID: 1, Version: 1})
	}
}
