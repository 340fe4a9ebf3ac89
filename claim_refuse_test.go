package gormlock_test

import (
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

// claimRefused fails if a claim was made, or refused without a reason that says want.
func claimRefused(t *testing.T, db *gorm.DB, want string, err error) {
	t.Helper()
	if err == nil || fromServer(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want an error of ours with %q", err, want)
	}
	var claimed int64
	if mustDo(t, db.Model(&job{}).Where("state <> 'ready'").Count(&claimed)); claimed > 0 {
		t.Errorf("%d rows were claimed", claimed)
	}
}

// What is no struct, nor a pointer to one, holds no row: it is refused before anything is sent.
func TestV16_ClaimRefusesElements(t *testing.T) {
	t.Parallel()
	db := jobs(t, 3)
	for name, claim := range map[string]func(db *gorm.DB) error{
		"a pointer to a pointer": func(db *gorm.DB) error { return second(gormlock.Claim[**job](db, 1, running)) },
		"a slice":                func(db *gorm.DB) error { return second(gormlock.Claim[[]job](db, 1, running)) },
		"a pointer to a slice":   func(db *gorm.DB) error { return second(gormlock.Claim[*[]job](db, 1, running)) },
		"an array":               func(db *gorm.DB) error { return second(gormlock.Claim[[2]job](db, 1, running)) },
		"any":                    func(db *gorm.DB) error { return second(gormlock.Claim[any](db.Model(&job{}), 1, running)) },
		"a number":               func(db *gorm.DB) error { return second(gormlock.Claim[int](db.Model(&job{}), 1, running)) },
	} {
		t.Run(name, func(t *testing.T) {
			watched, recorder := recorded(db)
			claimRefused(t, db, "unsupported data type", claim(watched))
			if sent := recorder.seen(); len(sent) > 0 {
				t.Errorf("sent %q", sent)
			}
		})
	}
}

// A Model with a key is a condition to a query of rows, and an update: a claim has no place for it.
func TestV16_ClaimRefusesModels(t *testing.T) {
	t.Parallel()
	db := jobs(t, 5)
	type query = func(*gorm.DB) *gorm.DB
	model := func(value any) query { return func(q *gorm.DB) *gorm.DB { return q.Model(value) } }
	three := &job{ID: 3}
	for _, c := range []struct {
		name, want string
		change     query
	}{
		{"a key", "with Where", model(three)},
		{"a key behind a pointer", "with Where", model(&three)},
		{"a slice with a key", "with Where", model(&[]job{{}, {ID: 3}})},
		{"pointers with a key", "with Where", model([]*job{nil, three})},
		{"another model", "changed the model", model(&queue{})},
		{"MapColumns", "MapColumns", func(q *gorm.DB) *gorm.DB { return q.MapColumns(map[string]string{"state": "fixed"}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			claimRefused(t, db, c.want, second(gormlock.Claim[job](c.change(db), 5, running)))
			claimRefused(t, db, c.want, second(gormlock.Claim[job](db, 5, running, c.change)))
			claimRefused(t, db, c.want, second(gormlock.Claim[job](db.Scopes(c.change), 5, running)))
		})
	}
	for name, value := range map[string]any{
		"a struct": &job{}, "no struct": (*job)(nil), "a slice": &[]job{}, "pointers": []*job{}, "other fields": &job{State: "x"},
	} {
		t.Run(name+" without a key", func(t *testing.T) {
			inTx(t, db, func(tx *gorm.DB) {
				for _, change := range []func(scope query) ([]job, error){
					func(scope query) ([]job, error) { return gormlock.Claim[job](scope(tx), 2, running, ready) },
					func(scope query) ([]job, error) { return gormlock.Claim[job](tx, 2, running, scope, ready) },
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
	db := jobs(t, 3)
	for name, change := range map[string]func(q *gorm.DB) *gorm.DB{
		"conditions":          func(q *gorm.DB) *gorm.DB { return q.Joins("Queue", db.Where("name = ?", "nope")) },
		"conditions, inner":   func(q *gorm.DB) *gorm.DB { return q.InnerJoins("Queue", db.Where(&queue{Name: "one"})) },
		"Select":              func(q *gorm.DB) *gorm.DB { return q.Joins("Queue", db.Select("id")) },
		"Omit":                func(q *gorm.DB) *gorm.DB { return q.Joins("Queue", db.Omit("name")) },
		"a condition as text": func(q *gorm.DB) *gorm.DB { return q.Joins("Queue", "name = 'nope'") },
	} {
		t.Run(name, func(t *testing.T) {
			claimRefused(t, db, `Joins("Queue")`, second(gormlock.Claim[job](change(db), 1, running)))
			claimRefused(t, db, `Joins("Queue")`, second(gormlock.Claim[job](db, 1, running, change)))
		})
	}
	t.Run("as the error says it", func(t *testing.T) {
		inTx(t, db, func(tx *gorm.DB) {
			rows, err := gormlock.Claim[job](tx, 1, running, ready, func(q *gorm.DB) *gorm.DB {
				return q.InnerJoins("Queue").Where(`"Queue"."name" = ?`, "one")
			})
			if err != nil || !slices.Equal(jobIDs(rows), []int64{2}) || rows[0].Queue == nil {
				t.Error(rows, err)
			}
			rows, err = gormlock.Claim[job](tx, 1, running, ready, func(q *gorm.DB) *gorm.DB {
				return q.Joins("join queues q on q.id = jobs.queue_id and q.name = ?", "one").Preload("Queue", "name = ?", "nope")
			})
			if err != nil || !slices.Equal(jobIDs(rows), []int64{1}) || rows[0].Queue != nil {
				t.Error(rows, err)
			}
		})
	})
}
