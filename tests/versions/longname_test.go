package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type longVersion struct {
	ID   int64
	Note string
	Rev  int64 `gorm:"column:the_version_of_this_row_which_has_a_name_of_more_than_sixty_three_bytes;not null;default:1" gormlock:"version"`
}

type longFence struct {
	ID    int64
	Note  string
	Token int64 `gorm:"column:the_fence_of_this_row_which_has_a_name_that_is_of_more_than_sixty_three_bytes" gormlock:"fence"`
}

type longKey struct {
	Key     int64 `gorm:"primaryKey;column:the_key_of_this_row_which_has_a_name_that_is_of_more_than_sixty_three_bytes"`
	Note    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type longValue struct {
	ID      int64
	Note    string `gorm:"column:die_Bemerkung_zu_dieser_Zeile_deren_Name_kürzer_ist_in_Letterän"` // of 63 letters, and 65 bytes
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

type longestName struct {
	ID      int64
	Note    string `gorm:"column:a_name_of_no_more_than_sixty_three_bytes_which_the_server_keeps"`
	Hidden  string `gorm:"->:false;<-;column:a_column_that_is_only_written_and_whose_name_is_of_more_than_sixty_three_bytes"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

// PostgreSQL shortens a name of more than 63 bytes, and GORM then finds no field for what it reads: it stays zero, beside the version of the
// row. That is an error on the first use, which names the field and the cure.
func TestNamesThatTheServerCuts(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&longVersion{}, &longFence{}, &longKey{}, &longValue{}, &longestName{}})
	for field, model := range map[string]any{
		"longVersion.Rev": &longVersion{}, "longFence.Token": &longFence{}, "longKey.Key": &longKey{}, "longValue.Note": &longValue{},
	} {
		for use, err := range map[string]error{
			"create": db.Create(model).Error,
			"read":   db.First(model).Error,
			"update": db.Model(model).Where("1=1").Update("note", "x").Error,
			"delete": db.Where("1=1").Delete(model).Error,
			"save":   db.Session(&gorm.Session{FullSaveAssociations: true}).Save(model).Error,
		} {
			if err == nil || !strings.HasPrefix(err.Error(), "gormlock: "+field+": PostgreSQL keeps 63 bytes") || !strings.Contains(err.Error(), "column:…") {
				t.Errorf("%s %T: %v", use, model, err)
			}
		}
	}
	row := stand.Made(t, db, longestName{Note: "a", Hidden: "b"})
	row.Note = "c"
	stand.MustDo(t, db.Save(&row))
	stand.Equal(t, "stored", stand.Row[longestName](t, db, row.ID).Note, "c")
}
