package versions_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// subscriber is a model of which an import brings some with their ids, and new ones.
type subscriber struct {
	ID      int64
	Email   string `gorm:"size:100;uniqueIndex"`
	Plan    string
	Locked  bool
	Points  float64 `gorm:"type:numeric(8,2)"`
	Version int64   `gorm:"not null;default:1" gormlock:"version"`
}

// An import names the id 1 for y, who is there with another id and so is left out. The sequence then gives 1 to a new subscriber. The row is that of
// the new one, or it is an error that nobody knows.
func TestUpsert_keysByChance(t *testing.T) {
	t.Parallel()
	where := clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "NOT subscribers.locked"}}}
	byEmail := []clause.Column{{Name: "email"}}
	conflicts := map[string]clause.OnConflict{
		"DO NOTHING":           {DoNothing: true},
		"DO NOTHING, by email": {Columns: byEmail, DoNothing: true},
		"the plan":             {Columns: byEmail, DoUpdates: clause.AssignmentColumns([]string{"plan"}), Where: where},
		"all columns":          {Columns: byEmail, UpdateAll: true, Where: where},
		"of its own":           {Columns: byEmail, DoUpdates: clause.Assignments(map[string]any{"plan": gorm.Expr("subscribers.plan || '+'")}), Where: where},
	}
	const trigger = "CREATE FUNCTION changes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN %; RETURN NEW; END $$; CREATE TRIGGER changes BEFORE INSERT OR UPDATE ON subscribers FOR EACH ROW EXECUTE FUNCTION changes()"
	triggers := map[string]string{
		"no trigger":                     "",
		"one that changes nothing":       strings.Replace(trigger, "%", "NEW.plan = NEW.plan", 1),
		"one that lowers the email":      strings.Replace(trigger, "%", "NEW.email = lower(NEW.email)", 1),
		"one that gives all one plan":    strings.Replace(trigger, "%", "NEW.plan = 'b'", 1),
		"one that changes every column":  strings.Replace(trigger, "%", "NEW.email = 'x' || NEW.email; NEW.plan = 'x'; NEW.points = 7", 1),
		"gormlock's own, for other code": "version",
	}
	imports := map[string][]subscriber{
		"the one with the id first": {{ID: 1, Email: "y", Plan: "a", Points: 1}, {Email: "new", Plan: "b", Points: 2}},
		"the one with the id last":  {{Email: "New", Plan: "b", Points: 2}, {ID: 1, Email: "y", Plan: "a", Points: 1}},
		"alike but for the email":   {{ID: 1, Email: "y", Plan: "b", Points: 2}, {Email: "new", Plan: "b", Points: 2}},
		"several":                   {{ID: 2, Email: "y", Plan: "a"}, {Email: "one", Plan: "b"}, {Email: "two", Plan: "b", Points: 1.5}, {ID: 60, Email: "z", Plan: "c"}},
		"and one without an id":     {{ID: 1, Email: "y", Plan: "a"}, {Email: "v", Plan: "b"}, {Email: "new", Plan: "b"}},
		"an id that is stored":      {{ID: 1, Email: "free", Plan: "a"}, {Email: "y", Plan: "b"}},
	}
	for conflictName, conflict := range conflicts {
		for triggerName, text := range triggers {
			for importName, given := range imports {
				t.Run(conflictName+", "+triggerName+", "+importName, func(t *testing.T) {
					db := stand.Versioned(t, []any{&subscriber{}})
					switch text {
					case "":
					case "version":
						stand.Must(t, db.Exec(gormlock.VersionTrigger("subscribers", "version")).Error)
					default:
						stand.Must(t, db.Exec(text).Error)
					}
					stand.Must(t, db.Exec("INSERT INTO subscribers (id, email, plan, locked) VALUES (50, 'y', 'old', true), (51, 'v', 'old', true)").Error)
					list := append([]subscriber{}, given...)
					err := db.Clauses(conflict).Create(&list).Error
					if err != nil {
						if text == "" && conflict.DoNothing {
							t.Fatalf("no trigger changes anything, and what was sent tells whose row it is: %v", err)
						}
						if !strings.Contains(err.Error(), "not known which structs") {
							t.Fatal(err)
						}
						return
					}
					rows := map[int64]subscriber{}
					var all []subscriber
					stand.Must(t, db.Session(&gorm.Session{NewDB: true}).Raw("SELECT * FROM subscribers").Scan(&all).Error)
					for _, row := range all {
						rows[row.ID] = row
					}
					for i := range list {
						row, is := rows[list[i].ID]
						if list[i].Version == 0 || list[i].ID == 0 {
							continue // left out
						}
						if !is || !strings.HasSuffix(strings.ToLower(row.Email), strings.ToLower(given[i].Email)) {
							t.Errorf("%+v has become %+v", given[i], list[i])
						}
						delete(rows, list[i].ID)
					}
					delete(rows, 50)
					delete(rows, 51)
					for _, row := range rows {
						t.Errorf("no struct has got the row %+v: %+v", row, list)
					}
				})
			}
		}
	}
}

// meter is a model whose columns have no text by which they could be sorted at once, but for the server.
type meter struct {
	ID      int64
	Email   string `gorm:"uniqueIndex"`
	At      time.Time
	Secret  encrypted
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A large import takes a time that grows with its number, and two lines that say the same are no riddle.
func TestUpsert_keysByChanceOfMany(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&meter{}})
	stand.MustDo(t, db.Create(&meter{Email: "there"}))
	list := []meter{{Email: "there"}, {Email: "new"}, {ID: 70, Email: "twice", Secret: "s"}, {Email: "twice", Secret: "s"}}
	for i := range 6000 {
		list = append(list, meter{ID: int64(1000 + i), Email: strconv.Itoa(i), Secret: encrypted(strconv.Itoa(i)), At: time.Unix(int64(i), 1234)})
	}
	began := time.Now()
	stand.MustDo(t, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&list))
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	for i, want := range map[int]int64{0: 0, 2: 70, 3: 0, 4: 1000, 5000: 5996} {
		stand.Equal(t, "id of "+list[i].Email, list[i].ID, want)
	}
	stand.Equal(t, "version", list[1].Version, 1)
}
