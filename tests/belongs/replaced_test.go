package belongs_test

import (
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	agent struct {
		ID      int64
		Code    int64  `gorm:"unique"`
		Name    string `gorm:"unique"`
		Version int64  `gorm:"not null;default:1" gormlock:"version"`
	}
	estate struct {
		ID        int64
		Note      string
		AgentID   *int64
		Agent     *agent
		DeputyID  int64
		Deputy    agent
		AgentCode *int64
		ByCode    *agent `gorm:"foreignKey:AgentCode;references:Code"`
		AgentName string
		ByName    *agent `gorm:"foreignKey:AgentName;references:Name"`
		Version   int64  `gorm:"not null;default:1" gormlock:"version"`
	}
)

// estates opens a database with two estates of the agents 11 and 13. The codes of these are the keys of others.
func estates(t *testing.T) *gorm.DB {
	t.Helper()
	db := stand.Open(t)
	db.DisableForeignKeyConstraintWhenMigrating = true
	stand.Must(t, db.AutoMigrate(&agent{}, &estate{}))
	stand.Must(t, db.Exec(`INSERT INTO agents (id, code, name) VALUES (11, 12, 'a'), (12, 99, 'b'), (13, 14, 'c'), (14, 98, 'd'), (15, 15, 'e');
		INSERT INTO estates (id, note, agent_id, deputy_id, agent_code, agent_name) VALUES (1, 'x', 11, 11, 12, 'a'), (2, 'y', 13, 13, 14, 'c')`).Error)
	return db
}

func agentsOf(t *testing.T, db *gorm.DB) (ids []int64) {
	t.Helper()
	stand.Must(t, db.Session(&gorm.Session{NewDB: true}).Model(&agent{}).Order("id").Pluck("id", &ids).Error)
	return ids
}

func inTransaction(do func(*gorm.DB) error) func(*gorm.DB) error {
	return func(db *gorm.DB) error { return db.Transaction(do) }
}

// What Unscoped().Replace or Append of a belongs-to has given to an owner is not deleted.
func TestUnscopedReplace_byWhatAnOwnerHas(t *testing.T) {
	t.Parallel()
	given := func(t *testing.T, db *gorm.DB, ids ...int64) (all []any) {
		t.Helper()
		for _, id := range ids {
			a := stand.Row[agent](t, db, id)
			all = append(all, &a)
		}
		return all
	}
	for _, relation := range []string{"Agent", "Deputy"} {
		for how, do := range map[string]func(db *gorm.DB) error{
			"Replace by itself": func(db *gorm.DB) error {
				one := stand.Row[estate](t, db, 1)
				return db.Model(&one).Association(relation).Unscoped().Replace(given(t, db, 11)[0])
			},
			"Append of itself": func(db *gorm.DB) error {
				one := stand.Row[estate](t, db, 1)
				return db.Model(&one).Association(relation).Unscoped().Append(given(t, db, 11)[0])
			},
			"all that is saved": func(db *gorm.DB) error {
				one := stand.Row[estate](t, db, 1)
				return db.Session(&gorm.Session{FullSaveAssociations: true}).Model(&one).Association(relation).Unscoped().Replace(given(t, db, 11)[0])
			},
			"Unscoped before": func(db *gorm.DB) error {
				one := stand.Row[estate](t, db, 1)
				return db.Unscoped().Model(&one).Association(relation).Replace(given(t, db, 11)[0])
			},
			"a swap": func(db *gorm.DB) error {
				var all []estate
				stand.Must(t, db.Order("id").Find(&all).Error)
				return db.Model(&all).Association(relation).Unscoped().Replace(given(t, db, 13, 11)...)
			},
			"one of many": func(db *gorm.DB) error {
				var all []estate
				stand.Must(t, db.Order("id").Find(&all).Error)
				return db.Model(&all).Association(relation).Unscoped().Replace(given(t, db, 15, 13)...)
			},
			"another relation has it": func(db *gorm.DB) error {
				one := stand.Row[estate](t, db, 1) // both relations have 11
				return db.Model(&one).Association(relation).Unscoped().Replace(given(t, db, 15)[0])
			},
		} {
			refusesBoth(t, relation+", "+how, do)
		}
	}
	t.Run("by another", func(t *testing.T) {
		t.Parallel()
		db := estates(t)
		stand.MustDo(t, db.Exec("UPDATE estates SET deputy_id = 0"))
		one := stand.Row[estate](t, db, 1)
		stand.Must(t, db.Model(&one).Association("Agent").Replace(given(t, db, 11)[0]))
		stand.Must(t, db.Model(&one).Association("Agent").Unscoped().Replace(given(t, db, 12)[0]))
		stand.Must(t, db.Model(&one).Association("Agent").Unscoped().Append(&agent{Code: 1, Name: "new"}))
		var all []estate
		stand.Must(t, db.Order("id").Find(&all).Error)
		stand.Must(t, db.Model(&all).Association("Agent").Unscoped().Replace(given(t, db, 14, 15)...))
		if left := agentsOf(t, db); !slices.Equal(left, []int64{14, 15}) {
			t.Errorf("%v", left)
		}
	})
}

// GORM looks for the row to delete by its primary key, and gives it the column to which the owner refers.
func TestUnscopedReplace_byAUniqueColumn(t *testing.T) {
	t.Parallel()
	for _, relation := range []string{"ByCode", "ByName"} {
		for how, do := range map[string]func(*gorm.DB) error{
			"Replace": func(db *gorm.DB) error {
				one, other := stand.Row[estate](t, db, 1), stand.Row[agent](t, db, 15)
				return db.Model(&one).Association(relation).Unscoped().Replace(&other)
			},
			"Append": func(db *gorm.DB) error {
				one, other := stand.Row[estate](t, db, 1), stand.Row[agent](t, db, 15)
				return db.Model(&one).Association(relation).Unscoped().Append(&other)
			},
			"of many": func(db *gorm.DB) error {
				var all []estate
				stand.Must(t, db.Order("id").Find(&all).Error)
				other, another := stand.Row[agent](t, db, 15), stand.Row[agent](t, db, 13)
				return db.Model(&all).Association(relation).Unscoped().Replace(&other, &another)
			},
			"all that is saved": func(db *gorm.DB) error {
				one, other := stand.Row[estate](t, db, 1), stand.Row[agent](t, db, 15)
				return db.Session(&gorm.Session{FullSaveAssociations: true}).Model(&one).Association(relation).Unscoped().Replace(&other)
			},
		} {
			refusesBoth(t, relation+", "+how, do)
		}
		t.Run(relation+", unlinked only", func(t *testing.T) {
			t.Parallel()
			db := estates(t)
			one, other := stand.Row[estate](t, db, 1), stand.Row[agent](t, db, 15)
			stand.Must(t, db.Model(&one).Association(relation).Replace(&other))
		})
	}
}

// refusesBoth checks that a call is refused, alone and in a transaction, and that nothing is stored.
func refusesBoth(t *testing.T, name string, do func(*gorm.DB) error) {
	t.Helper()
	for where, do := range map[string]func(*gorm.DB) error{"alone": do, "in a transaction": inTransaction(do)} {
		t.Run(name+", "+where, func(t *testing.T) {
			t.Parallel()
			db := estates(t)
			before := agentsOf(t, db)
			if err := do(db); err == nil || !strings.Contains(err.Error(), "leave Unscoped out") {
				t.Errorf("%v", err)
			}
			if after := agentsOf(t, db); !slices.Equal(before, after) {
				t.Errorf("%v", after)
			}
		})
	}
}
