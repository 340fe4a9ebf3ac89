package claims_test

import (
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// claimRefused fails if a claim was made, or refused without a reason that says want.
func claimRefused(t *testing.T, db *gorm.DB, want string, err error) {
	t.Helper()
	if err == nil || stand.FromServer(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want an error of ours with %q", err, want)
	}
	noneClaimed(t, db)
}

// noneClaimed fails if a job is not ready any more.
func noneClaimed(t *testing.T, db *gorm.DB) {
	t.Helper()
	var claimed int64
	if stand.MustDo(t, db.Model(&stand.Job{}).Where("state <> 'ready'").Count(&claimed)); claimed > 0 {
		t.Errorf("%d rows were claimed", claimed)
	}
}

// What is no struct, nor a pointer to one, holds no row: it is refused before anything is sent.
func TestV16_ClaimRefusesElements(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 3)
	for name, claim := range map[string]func(db *gorm.DB) error{
		"a pointer to a pointer": func(db *gorm.DB) error { return stand.ErrorOf(gormlock.Claim[**stand.Job](db, 1, stand.Running)) },
		"a slice":                func(db *gorm.DB) error { return stand.ErrorOf(gormlock.Claim[[]stand.Job](db, 1, stand.Running)) },
		"a pointer to a slice":   func(db *gorm.DB) error { return stand.ErrorOf(gormlock.Claim[*[]stand.Job](db, 1, stand.Running)) },
		"an array":               func(db *gorm.DB) error { return stand.ErrorOf(gormlock.Claim[[2]stand.Job](db, 1, stand.Running)) },
		"any": func(db *gorm.DB) error {
			return stand.ErrorOf(gormlock.Claim[any](db.Model(&stand.Job{}), 1, stand.Running))
		},
		"a number": func(db *gorm.DB) error {
			return stand.ErrorOf(gormlock.Claim[int](db.Model(&stand.Job{}), 1, stand.Running))
		},
	} {
		t.Run(name, func(t *testing.T) {
			watched, recorder := stand.Recorded(db)
			claimRefused(t, db, "unsupported data type", claim(watched))
			if sent := recorder.Seen(); len(sent) > 0 {
				t.Errorf("sent %q", sent)
			}
		})
	}
}

// A Model with a key is a condition to a query of rows, and an update: a claim has no place for it.
func TestV16_ClaimRefusesModels(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 5)
	type query = func(*gorm.DB) *gorm.DB
	model := func(value any) query { return func(q *gorm.DB) *gorm.DB { return q.Model(value) } }
	three := &stand.Job{ID: 3}
	for _, c := range []struct {
		name, want string
		change     query
	}{
		{"a key", "use Where", model(three)},
		{"a key behind a pointer", "use Where", model(&three)},
		{"a slice with a key", "use Where", model(&[]stand.Job{{}, {ID: 3}})},
		{"pointers with a key", "use Where", model([]*stand.Job{nil, three})},
		{"another model", "changed the model", model(&stand.Queue{})},
		{"MapColumns", "MapColumns", func(q *gorm.DB) *gorm.DB { return q.MapColumns(map[string]string{"state": "fixed"}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			claimRefused(t, db, c.want, stand.ErrorOf(gormlock.Claim[stand.Job](c.change(db), 5, stand.Running)))
			claimRefused(t, db, c.want, stand.ErrorOf(gormlock.Claim[stand.Job](db, 5, stand.Running, c.change)))
			claimRefused(t, db, c.want, stand.ErrorOf(gormlock.Claim[stand.Job](db.Scopes(c.change), 5, stand.Running)))
		})
	}
	for name, value := range map[string]any{
		"a struct": &stand.Job{}, "no struct": (*stand.Job)(nil), "a slice": &[]stand.Job{}, "pointers": []*stand.Job{}, "other fields": &stand.Job{State: "x"},
	} {
		t.Run(name+" without a key", func(t *testing.T) {
			stand.InTx(t, db, func(tx *gorm.DB) {
				for _, change := range []func(scope query) ([]stand.Job, error){
					func(scope query) ([]stand.Job, error) {
						return gormlock.Claim[stand.Job](scope(tx), 2, stand.Running, stand.Ready)
					},
					func(scope query) ([]stand.Job, error) {
						return gormlock.Claim[stand.Job](tx, 2, stand.Running, scope, stand.Ready)
					},
				} {
					if rows, err := change(model(value)); err != nil || len(rows) != 2 || rows[0].State != "running" || rows[0].Found != 1 {
						t.Error(rows, err)
					}
				}
			})
		})
	}
}

// What a join of an association asks of it, the query that loads it for a claim would not ask.
func TestV16_ClaimRefusesJoins(t *testing.T) {
	t.Parallel()
	db := stand.Jobs(t, 3)
	for name, change := range map[string]func(q *gorm.DB) *gorm.DB{
		"conditions":          func(q *gorm.DB) *gorm.DB { return q.Joins("Queue", db.Where("name = ?", "nope")) },
		"conditions, inner":   func(q *gorm.DB) *gorm.DB { return q.InnerJoins("Queue", db.Where(&stand.Queue{Name: "one"})) },
		"Select":              func(q *gorm.DB) *gorm.DB { return q.Joins("Queue", db.Select("id")) },
		"Omit":                func(q *gorm.DB) *gorm.DB { return q.Joins("Queue", db.Omit("name")) },
		"a condition as text": func(q *gorm.DB) *gorm.DB { return q.Joins("Queue", "name = 'nope'") },
	} {
		t.Run(name, func(t *testing.T) {
			claimRefused(t, db, `Joins("Queue")`, stand.ErrorOf(gormlock.Claim[stand.Job](change(db), 1, stand.Running)))
			claimRefused(t, db, `Joins("Queue")`, stand.ErrorOf(gormlock.Claim[stand.Job](db, 1, stand.Running, change)))
		})
	}
	t.Run("as the error says it", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			rows, err := gormlock.Claim[stand.Job](tx, 1, stand.Running, stand.Ready, func(q *gorm.DB) *gorm.DB {
				return q.InnerJoins("Queue").Where(`"Queue"."name" = ?`, "one")
			})
			if err != nil || !slices.Equal(stand.JobIDs(rows), []int64{2}) || rows[0].Queue == nil {
				t.Error(rows, err)
			}
			rows, err = gormlock.Claim[stand.Job](tx, 1, stand.Running, stand.Ready, func(q *gorm.DB) *gorm.DB {
				return q.Joins("join queues q on q.id = jobs.queue_id and q.name = ?", "one").Preload("Queue", "name = ?", "nope")
			})
			if err != nil || !slices.Equal(stand.JobIDs(rows), []int64{1}) || rows[0].Queue != nil {
				t.Error(rows, err)
			}
		})
	})
}
