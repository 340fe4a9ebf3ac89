package versions_test

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// LeafBody is what leaves of all kinds of versions have.
type LeafBody struct {
	ID            int64
	Front, Behind string
}

func (b *LeafBody) leaf() *LeafBody { return b }

type (
	countedLeaf struct {
		LeafBody
		Version int64 `gormlock:"version"`
	}
	timedLeaf struct {
		LeafBody
		Version time.Time `gormlock:"version"`
	}
	railsLeaf struct {
		LeafBody
		LockVersion int32 `gormlock:"version,rails"`
	}
	serversLeaf struct {
		LeafBody
		Version uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
	}
)

// A write with IgnoreVersion leaves alone what the struct holds in other columns. If a rival has written in between, the struct's next write is
// refused, or it has what he wrote.
func TestIgnoreVersion_leavesOtherColumns(t *testing.T) {
	t.Parallel()
	stand.EachMode(t, func(t *testing.T, opts ...pgtest.Option) {
		db := stand.Versioned(t, []any{&countedLeaf{}, &timedLeaf{}, &railsLeaf{}, &serversLeaf{}}, opts...)
		t.Run("number", func(t *testing.T) { ignoresAndWrites[countedLeaf](t, db) })
		t.Run("time", func(t *testing.T) { ignoresAndWrites[timedLeaf](t, db) })
		t.Run("rails", func(t *testing.T) { ignoresAndWrites[railsLeaf](t, db) })
		t.Run("xmin", func(t *testing.T) { ignoresAndWrites[serversLeaf](t, db) })
	})
}

func ignoresAndWrites[T any, P interface {
	*T
	leaf() *LeafBody
}](t *testing.T, db *gorm.DB) {
	t.Helper()
	unchecked := db.Clauses(gormlock.IgnoreVersion()).Session(&gorm.Session{})
	for name, write := range map[string]func(row *T) error{
		"Save":          func(row *T) error { return unchecked.Save(row).Error },
		"Save, a slice": func(row *T) error { return unchecked.Save([]*T{row}).Error },
		"Update":        func(row *T) error { return unchecked.Model(row).Update("front", "b").Error },
		"UpdateColumn":  func(row *T) error { return unchecked.Model(row).UpdateColumn("front", "b").Error },
		"Select":        func(row *T) error { return unchecked.Select("front").Updates(row).Error },
		"slice":         func(row *T) error { return unchecked.Model([]*T{row}).Update("front", "b").Error },
	} {
		row := stand.Made(t, db, *new(T))
		P(&row).leaf().Behind = "not stored yet"
		stand.Must(t, write(&row))
		stand.Equal(t, name+": what is not stored yet", P(&row).leaf().Behind, "not stored yet")

		row = stand.Made(t, db, *new(T))
		id := P(&row).leaf().ID
		rival := stand.Row[T](t, db, id)
		stand.Must(t, db.Model(&rival).Update("behind", "the rival's").Error)
		stand.Must(t, write(&row))
		was := stand.Row[T](t, db, id)
		switch err := db.Save(&row).Error; {
		case err == nil:
			is := stand.Row[T](t, db, id)
			stand.Equal(t, name+" beside a rival, and Save after it", P(&is).leaf().Behind, P(&was).leaf().Behind)
		case !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing):
			t.Errorf("%s beside a rival, and Save after it: %v", name, err)
		}
	}
}

// What the caller's conditions leave out is as it was before, whether the version was compared or not.
func TestIgnoreVersion_ofRowsThatAreLeftOut(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&countedLeaf{}})
	for name, asks := range map[string]*gorm.DB{"compared": db, "ignored": db.Clauses(gormlock.IgnoreVersion())} {
		asks = asks.Session(&gorm.Session{})
		left, written := stand.Made(t, db, countedLeaf{LeafBody: LeafBody{Front: "a"}}), stand.Made(t, db, countedLeaf{LeafBody: LeafBody{Front: "b"}})
		_ = asks.Model(&[]*countedLeaf{&left, &written}).Where("front = 'b'").Update("front", "c").Error
		stand.Equal(t, name+": the struct of a slice", left.Front, stand.Row[countedLeaf](t, db, left.ID).Front)
		stand.Equal(t, name+": the struct that was written", written.Front, stand.Row[countedLeaf](t, db, written.ID).Front)
		_ = asks.Model(&left).Where("front = 'b'").Update("front", "d").Error
		stand.Equal(t, name+": the struct", left.Front, stand.Row[countedLeaf](t, db, left.ID).Front)
	}
}
