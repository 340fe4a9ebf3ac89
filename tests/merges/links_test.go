package merges_test

import (
	"reflect"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// team has members, by its key and by its code.
type team struct {
	ID   int64
	Code string `gorm:"uniqueIndex"`
}

type badge struct {
	ID       int64
	MemberID *int64
	Nick     *string
	Text     string
}

// member belongs to teams, and has badges by columns of its own.
type member struct {
	ID       int64
	Name     string
	TeamID   *int64
	Team     *team
	HomeCode string
	Home     team `gorm:"foreignKey:HomeCode;references:Code"`
	Nick     string
	Badges   []badge `gorm:"foreignKey:Nick;references:Nick;constraint:-"`
	Own      []badge
	Version  int64 `gorm:"not null;default:1" gormlock:"version"`
}

// staffed is a member of team 1 at home in team 2, with a badge, as read with all it has.
func staffed(t *testing.T, db *gorm.DB) (m member, teams []team) {
	t.Helper()
	stand.Must(t, db.Exec("DELETE FROM badges").Error)
	stand.Must(t, db.Exec("DELETE FROM members").Error)
	stand.Must(t, db.Exec("DELETE FROM teams").Error)
	teams = []team{{Code: "a"}, {Code: "b"}, {Code: "c"}}
	stand.Must(t, db.Create(&teams).Error)
	m = member{Name: "m", TeamID: &teams[0].ID, HomeCode: "b", Nick: "n"}
	stand.Must(t, db.Create(&m).Error)
	stand.Must(t, db.Create(&badge{Nick: &m.Nick, MemberID: &m.ID, Text: "x"}).Error)
	var read member
	stand.Must(t, db.Preload("Team").Preload("Home").Preload("Badges").Preload("Own").First(&read, m.ID).Error)
	if read.Team == nil || read.Home.ID == 0 || len(read.Badges) != 1 || len(read.Own) != 1 {
		t.Fatalf("%+v", read)
	}
	return read, teams
}

// mustKeep fails the test unless a Save of the struct leaves what the row refers to.
func mustKeep(t *testing.T, db *gorm.DB, m *member) {
	t.Helper()
	var had, has member
	stand.Must(t, db.Omit("version").First(&had, m.ID).Error)
	stand.Must(t, db.Save(m).Error)
	stand.Must(t, db.Omit("version").First(&has, m.ID).Error)
	if !reflect.DeepEqual(had, has) {
		t.Errorf("the row was %+v and is %+v", had, has)
	}
}

// What a rival moved stays where he moved it when the struct is saved later: what no longer fits is not held any more.
func TestLinks_followTheirColumns(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&team{}, &member{}, &badge{}}, func(t *testing.T, db *gorm.DB) {
		for name, again := range map[string]func(tx *gorm.DB, m *member) error{
			"LockRow": func(tx *gorm.DB, m *member) error {
				return gormlock.LockRow(tx, m)
			},
			"SaveMerged": func(tx *gorm.DB, m *member) error {
				base := *m
				m.Name = "mine"
				return gormlock.SaveMerged(tx, m, &base)
			},
			"SaveMerged of nothing": func(tx *gorm.DB, m *member) error {
				base := *m
				return gormlock.SaveMerged(tx, m, &base)
			},
		} {
			if name == "LockRow" && db.Name() != "postgres" {
				continue // it knows no row locks
			}
			m, teams := staffed(t, db)
			stand.Must(t, db.Transaction(func(tx *gorm.DB) error { return again(tx, &m) }))
			if m.Team == nil || m.Home.ID == 0 || len(m.Badges) != 1 || len(m.Own) != 1 {
				t.Errorf("%s: what fits is gone: %+v", name, m)
			}
			stand.Must(t, db.Model(&member{}).Where("id = ?", m.ID).Clauses(gormlock.PreserveVersion()).Updates(map[string]any{"team_id": teams[1].ID, "home_code": "c", "nick": "other"}).Error)
			stand.Must(t, db.Transaction(func(tx *gorm.DB) error { return again(tx, &m) }))
			if m.Team != nil || m.Home != (team{}) || m.Badges != nil || len(m.Own) != 1 {
				t.Errorf("%s: what fits no more is held: %+v", name, m)
			}
			mustKeep(t, db, &m)

			m, teams = staffed(t, db)
			stand.Must(t, db.Model(&member{}).Where("id = ?", m.ID).Clauses(gormlock.PreserveVersion()).Update("team_id", nil).Error)
			stand.Must(t, db.Transaction(func(tx *gorm.DB) error { return again(tx, &m) }))
			if m.Team != nil || m.Home.ID != teams[1].ID {
				t.Errorf("%s: a rival set NULL: %+v", name, m)
			}
			mustKeep(t, db, &m)
		}
	})
}

// A key that I moved by its column alone is not moved back by the association of base, and a rollback gives all back.
func TestLinks_ofWhatIsMine(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&team{}, &member{}, &badge{}}, func(t *testing.T, db *gorm.DB) {
		base, teams := staffed(t, db)
		mine := base
		mine.TeamID = &teams[2].ID
		was := mine
		tx := db.Begin()
		stand.Must(t, gormlock.SaveMerged(tx, &mine, &base))
		stand.Equal(t, "the team of another key", mine.Team, nil)
		stand.Must(t, tx.Rollback().Error)
		if !reflect.DeepEqual(mine, was) || mine.Team != was.Team {
			t.Errorf("after a rollback mine is %+v, was %+v", mine, was)
		}
		stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
		stand.Equal(t, "the team of another key", mine.Team, nil)
		mustKeep(t, db, &mine)
		stand.Equal(t, "team", *mine.TeamID, teams[2].ID)

		// An association that was set along with its key stays.
		base = mine
		mine.TeamID, mine.Team = &teams[0].ID, &teams[0]
		stand.Must(t, gormlock.SaveMerged(db.Omit("Team"), &mine, &base))
		stand.Equal(t, "the team of mine", mine.Team, &teams[0])
		mustKeep(t, db, &mine)
	})
}

// LockRow leaves what the caller has set and not saved, where the row still has the key that the struct had.
func TestLinks_notSavedYet(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&team{}, &member{}, &badge{}})
	m, teams := staffed(t, db)
	m.Team = &teams[2]
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		if err := gormlock.LockRow(tx, &m); err != nil {
			return err
		}
		return tx.Save(&m).Error
	}))
	stand.Equal(t, "team", *stand.Row[member](t, db, m.ID).TeamID, teams[2].ID)
}

// A trigger, or a hook, may move the row as well.
func TestLinks_movedByATrigger(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&team{}, &member{}, &badge{}})
	stand.Must(t, db.Exec("CREATE FUNCTION moved() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.team_id = (SELECT max(id) FROM teams); RETURN NEW; END'").Error)
	stand.Must(t, db.Exec("CREATE TRIGGER moved BEFORE UPDATE ON members FOR EACH ROW WHEN (NEW.name = 'mine') EXECUTE FUNCTION moved()").Error)
	base, teams := staffed(t, db)
	mine := base
	mine.Name = "mine"
	stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
	if mine.Team != nil || *mine.TeamID != teams[2].ID || base.Team == nil {
		t.Errorf("%+v", mine)
	}
	mine.Name = "later"
	mustKeepTeam(t, db, &mine, teams[2].ID)
}

func mustKeepTeam(t *testing.T, db *gorm.DB, m *member, id int64) {
	t.Helper()
	stand.Must(t, db.Save(m).Error)
	stand.Equal(t, "team", *stand.Row[member](t, db, m.ID).TeamID, id)
}

// one is unique, and its hooks may panic.
type one struct {
	ID      int64
	Name    string   `gorm:"unique"`
	Labels  []string `gorm:"serializer:json"`
	Any     any      `gorm:"serializer:json"`
	Version int64    `gorm:"not null;default:1" gormlock:"version"`
}

func (o *one) BeforeSave(*gorm.DB) error {
	if o.Name == "panics" {
		o.Labels[0] = "hook"
		panic(errHook)
	}
	return nil
}

// Whatever ends a merge, mine is as it was.
func TestSaveMerged_endsOtherwise(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&one{}}, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Create(&one{Name: "taken", Labels: []string{"x"}}).Error)
		for name, change := range map[string]func(*one){
			"a unique column": func(o *one) { o.Name = "taken" },
			"a panic":         func(o *one) { o.Name = "panics" },
			"no json":         func(o *one) { o.Any = make(chan int) },
		} {
			base := one{Name: name, Labels: []string{"a"}}
			stand.Must(t, db.Create(&base).Error)
			stand.Must(t, db.Model(&one{}).Where("id = ?", base.ID).Clauses(gormlock.IgnoreVersion()).UpdateColumn("labels", `["theirs"]`).Error)
			mine := base
			change(&mine)
			was := mine
			err := func() (err error) {
				defer func() {
					if r := recover(); r != nil {
						err, _ = r.(error)
					}
				}()
				return gormlock.SaveMerged(db, &mine, &base)
			}()
			if err == nil || !reflect.DeepEqual(mine, was) || base.Labels[0] != "a" {
				t.Errorf("%s: %v, mine is %+v, was %+v, base %+v", name, err, mine, was, base)
			}
			if row := stand.Row[one](t, db, base.ID); row.Name != name || row.Labels[0] != "theirs" {
				t.Errorf("%s: the row is %+v", name, row)
			}
			was.Name, was.Any = name+" again", nil
			stand.Must(t, gormlock.SaveMerged(db, &was, &base))
		}
	})
}

// What a write reads back of a row that others have changed leaves no association of theirs behind either.
func TestLinks_afterAWriteThatReadsTheRow(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&team{}, &member{}, &badge{}})
	for name, write := range map[string]func(m *member) error{
		"ExpectVersion": func(m *member) error {
			return db.Omit(clause.Associations).Clauses(gormlock.ExpectVersion(2)).Model(m).Update("name", "x").Error
		},
		"IfMatch": func(m *member) error {
			return db.Omit(clause.Associations).Clauses(stand.IfMatch(`"2"`)).Model(m).Updates(map[string]any{"name": "x"}).Error
		},
	} {
		m, teams := staffed(t, db)
		stand.Must(t, db.Model(&member{}).Where("id = ?", m.ID).Update("team_id", teams[1].ID).Error)
		stand.Must(t, write(&m))
		if err := db.Save(&m).Error; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		stand.Equal(t, name+": the rival's team", *stand.Row[member](t, db, m.ID).TeamID, teams[1].ID)
	}
}
