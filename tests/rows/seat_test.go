package rows_test

import (
	"slices"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// seat is a row to lock: of a hall, with tickets.
type seat struct {
	ID      int64
	Name    string
	HallID  int64
	Hall    *hall
	Tickets []ticket

	hook func(tx *gorm.DB) error
}

func (s *seat) BeforeCreate(tx *gorm.DB) error {
	if s.hook == nil {
		return nil
	}
	return s.hook(tx)
}

type hall struct {
	ID   int64
	Name string
}

type ticket struct {
	ID     int64
	SeatID int64
	Stubs  []stub
}

type stub struct {
	ID       int64
	TicketID int64
}

// seats opens a database of the test's own with the seats 1 to 4, of hall 1, with a ticket and a stub each.
func seats(t testing.TB, opts ...pgtest.Option) *gorm.DB {
	t.Helper()
	db := stand.Open(t, opts...)
	if err := db.AutoMigrate(&hall{}, &seat{}, &ticket{}, &stub{}); err != nil {
		t.Fatal(err)
	}
	stand.MustDo(t, db.Create(&hall{ID: 1, Name: "big"}))
	for id := int64(1); id <= 4; id++ {
		stand.MustDo(t, db.Create(&seat{ID: id, HallID: 1, Tickets: []ticket{{ID: id, Stubs: []stub{{ID: id}}}}}))
	}
	return db
}

func ids(rows []seat) []int64 {
	var ids []int64
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	slices.Sort(ids)
	return ids
}
