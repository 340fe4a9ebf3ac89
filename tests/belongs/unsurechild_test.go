package belongs_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type keptOwner struct {
	ID      int64
	Kids    []keptKid `gorm:"foreignKey:OwnerID"`
	Version int64     `gorm:"not null;default:1" gormlock:"version"`
}

// keptKid has columns which the server stores otherwise than Go holds them.
type keptKid struct {
	Code    string `gorm:"primaryKey;type:uuid"`
	OwnerID int64
	Raw     json.RawMessage `gorm:"type:jsonb"`
	Map     map[string]any  `gorm:"type:jsonb;serializer:json"`
	Price   float64         `gorm:"type:numeric(10,2)"`
	Number  string          `gorm:"type:numeric;default:0"`
	Real    float64         `gorm:"type:real"`
	Char    string          `gorm:"type:char(5)"`
	Day     time.Time       `gorm:"type:date"`
	At      *time.Time
	Default string `gorm:"default:'d'"`
	Inet    string `gorm:"type:inet;default:'::'"`
	Other   string `gorm:"type:uuid;default:gen_random_uuid()"`
	Time    string `gorm:"type:interval;default:'0'"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

// storedOtherwise changes a kid to what the server stores otherwise.
var storedOtherwise = map[string]func(k *keptKid){
	"nothing":  func(*keptKid) {},
	"jsonb":    func(k *keptKid) { k.Raw = json.RawMessage(`{"b":1,"a":[1,2]}`) },
	"map":      func(k *keptKid) { k.Map = map[string]any{"z": map[string]any{"q": []int{1}}} },
	"scale":    func(k *keptKid) { k.Price = 1.005 },
	"number":   func(k *keptKid) { k.Number = "01.50" },
	"real":     func(k *keptKid) { k.Real = 0.1 },
	"char":     func(k *keptKid) { k.Char = "ab" },
	"date":     func(k *keptKid) { k.Day = time.Now() },
	"time":     func(k *keptKid) { now := time.Now(); k.At = &now },
	"inet":     func(k *keptKid) { k.Inet = "10.0.0.1/32" },
	"uuid":     func(k *keptKid) { k.Other = "ABCDEF00-0000-0000-0000-000000000001" },
	"interval": func(k *keptKid) { k.Time = "90 minutes" },
	"key":      func(k *keptKid) { k.Code = "ABCDEF" + k.Code[6:] },
}

// A new child whose key the program has made has the version of its row, however the server stores its columns. One that was not read, and
// stands for a row, has not.
func TestChild_thatIsStoredOtherwise(t *testing.T) {
	t.Parallel()
	tables := map[string]func(db *gorm.DB) error{
		"table": func(*gorm.DB) error { return nil },
		"partitions": func(db *gorm.DB) error {
			return db.Exec(`ALTER TABLE kept_kids RENAME TO kept_kids_0; CREATE TABLE kept_kids (LIKE kept_kids_0 INCLUDING ALL) PARTITION BY HASH (code);
				CREATE TABLE kept_kids_1 PARTITION OF kept_kids FOR VALUES WITH (MODULUS 2, REMAINDER 0);
				CREATE TABLE kept_kids_2 PARTITION OF kept_kids FOR VALUES WITH (MODULUS 2, REMAINDER 1)`).Error
		},
	}
	n := 0 // of all kids: the tables of both are one
	for table, made := range tables {
		db := stand.Versioned(t, []any{&keptOwner{}, &keptKid{}})
		stand.Must(t, made(db))
		for name, change := range storedOtherwise {
			fresh := func() keptKid {
				n++
				k := keptKid{Code: fmt.Sprintf("00000000-0000-0000-0000-%012d", n), Raw: json.RawMessage(`{}`)}
				change(&k)
				return k
			}
			o := keptOwner{Kids: []keptKid{fresh(), fresh()}}
			stand.MustDo(t, db.Create(&o))
			theirs, form := fresh(), fresh()
			theirs.OwnerID, theirs.Price = o.ID, 55
			stand.MustDo(t, db.Create(&theirs))
			form.Code, form.Price = theirs.Code, 7
			o.Kids = append(o.Kids, fresh(), form)
			stand.MustDo(t, db.Save(&o))
			for i := range o.Kids[:3] {
				stand.Equal(t, fmt.Sprint(table, ", ", name, ": version of kid ", i), o.Kids[i].Version, 1)
				stand.MustDo(t, db.Model(&o.Kids[i]).Update("price", 9))
			}
			if err := db.Save(&o.Kids[3]).Error; err == nil {
				t.Errorf("%s, %s: a form was saved over its row", table, name)
			}
		}
	}
}
