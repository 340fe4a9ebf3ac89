package mariadb_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type shelf struct {
	ID    int64
	Books []book `gorm:"foreignKey:ShelfID"`
}

type book struct {
	ID      int64
	ShelfID *int64
	Title   string    `gorm:"size:20"`
	Version time.Time `gorm:"type:timestamp(6) null" gormlock:"version"`
}

// A version may be a timestamp, which ends in 2038: children are saved with their parents, and stale ones are refused.
func TestVersionOfTimestamp(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]mariaserver.Option{
		"strict": nil, "lax": {mariaserver.Param("sql_mode=%27%27")}, "another zone": {mariaserver.Param("time_zone=%27%2B05%3A30%27")}, "like MySQL": {stand.LikeMySQL},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := mariaserver.Open(t, []any{&shelf{}, &book{}}, opts...)
			s := shelf{ID: 1, Books: []book{{Title: "a"}}}
			stand.Must(t, db.Create(&s).Error)
			s.Books[0] = stand.Row[book](t, db, s.Books[0].ID)
			stand.Must(t, db.Save(&s).Error)
			stand.Must(t, db.Session(&gorm.Session{FullSaveAssociations: true}).Save(&s).Error)
			s.Books = append(s.Books, book{Title: "new"})
			stand.Must(t, db.Save(&s).Error)
			moved := s.Books[0]
			stand.Must(t, db.Create(&shelf{ID: 2}).Error)
			stand.Must(t, db.Model(&shelf{ID: 2}).Association("Books").Append(&moved))
			stand.Equal(t, "shelf", *stand.Row[book](t, db, moved.ID).ShelfID, 2)
			stand.MustStale(t, db.Model(&shelf{ID: 1}).Association("Books").Append(&s.Books[0])) // it was moved since
			stand.MustStale(t, db.Save(&s.Books[0]).Error)
			gone := s.Books[1]
			stand.Must(t, db.Exec("DELETE FROM books WHERE id = ?", gone.ID).Error)
			stand.MustStale(t, db.Model(&shelf{ID: 2}).Association("Books").Append(&gone))
			var left int64
			stand.Must(t, db.Model(&book{}).Count(&left).Error)
			stand.Equal(t, "books", left, 1)
		})
	}
}
