package versions_test

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"reflect"
	"testing"

	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// encrypted is sent differently each time, with a random number in front.
type encrypted string

func (e encrypted) Value() (driver.Value, error) {
	nonce := make([]byte, 4)
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return hex.EncodeToString(nonce) + ":" + string(e), nil
}

func (e *encrypted) Scan(stored any) error {
	*e = encrypted(fmt.Sprint(stored)[9:])
	return nil
}

// encrypting is a serializer that does so.
type encrypting struct{}

func (encrypting) Scan(ctx context.Context, field *schema.Field, into reflect.Value, stored any) error {
	return field.Set(ctx, into, fmt.Sprint(stored)[9:])
}

func (encrypting) Value(_ context.Context, _ *schema.Field, _ reflect.Value, value any) (any, error) {
	return encrypted(fmt.Sprint(value)).Value()
}

func init() { schema.RegisterSerializer("encrypting", encrypting{}) }

type patient struct {
	ID      int64
	Email   string `gorm:"uniqueIndex"`
	Secret  encrypted
	Notes   string `gorm:"serializer:encrypting"`
	Token   string `gorm:"type:uuid;default:gen_random_uuid()"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

// DO NOTHING leaves one struct out. Whose the other rows are shows what was encrypted, not how it was sent; and a column that was left to its
// default was sent as no value.
func TestDoNothing_ofWhatIsEncrypted(t *testing.T) {
	t.Parallel()
	for name, conflict := range map[string]clause.OnConflict{
		"": {DoNothing: true}, "by email": {Columns: []clause.Column{{Name: "email"}}, DoNothing: true},
		"an update with a condition": {Columns: []clause.Column{{Name: "email"}}, DoUpdates: clause.AssignmentColumns([]string{"secret", "notes"}), Where: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "patients.id > 100"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			db := stand.Versioned(t, []any{&patient{}})
			stand.MustDo(t, db.Create(&patient{Email: "y", Secret: "s", Notes: "n"}))
			list := []patient{
				{Email: "y", Secret: "s", Notes: "n"}, {Email: "a", Secret: "s", Notes: "n", Token: "6F9619FF-8B86-D011-B42D-00CF4FC964FF"},
				{Email: "b", Secret: "t", Notes: "n"}, {Email: "c", Secret: "s", Notes: "other"},
			}
			stand.MustDo(t, db.Clauses(conflict).Create(&list))
			for i := range list {
				if (list[i].ID == 0) != (i == 0) {
					t.Errorf("%+v", list[i])
				}
				if i > 0 {
					stand.Equal(t, "email", stand.Row[patient](t, db, list[i].ID).Email, list[i].Email)
					list[i].Notes = "new"
					stand.MustDo(t, db.Save(&list[i]))
				}
			}
		})
	}
}
