package versions_test

import (
	"database/sql"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/etag"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A statement compares one version, and the columns of one IfUnchanged. A second that asks for something else is an error, and does not
// take the place of the first.
func TestTwoExpectations(t *testing.T) {
	t.Parallel()
	scope := func(clauses ...clause.Expression) func(*gorm.DB) *gorm.DB {
		return func(db *gorm.DB) *gorm.DB {
			for _, c := range clauses {
				db = db.Clauses(c)
			}
			return db
		}
	}
	one, two := gormlock.ExpectVersion(1), gormlock.ExpectVersion(2)
	balance, note := gormlock.IfUnchanged(&stand.Account{ID: 1}, "balance"), gormlock.IfUnchanged(&stand.Account{ID: 1}, "note")
	ifMatch := func(version int64) clause.Expression {
		tag, err := etag.Of(&stand.Account{ID: 1, Version: version})
		stand.Must(t, err)
		r := httptest.NewRequest(http.MethodPut, "/accounts/1", nil)
		r.Header.Set("If-Match", tag)
		match, err := etag.IfMatch(r)
		stand.Must(t, err)
		return match
	}
	for name, clauses := range map[string][2]clause.Expression{
		"two versions": {one, two}, "a tag and a version": {ifMatch(1), two}, "two tags": {ifMatch(1), ifMatch(2)}, "two of IfUnchanged": {balance, note},
	} {
		for how, db := range map[string]func(db *gorm.DB) *gorm.DB{
			"clauses":            func(db *gorm.DB) *gorm.DB { return db.Clauses(clauses[0], clauses[1]) },
			"a scope and clause": func(db *gorm.DB) *gorm.DB { return db.Scopes(scope(clauses[0])).Clauses(clauses[1]) },
			"two scopes":         func(db *gorm.DB) *gorm.DB { return db.Scopes(scope(clauses[0]), scope(clauses[1])) },
			"a session":          func(db *gorm.DB) *gorm.DB { return db.Clauses(clauses[0]).Session(&gorm.Session{}).Clauses(clauses[1]) },
		} {
			for what, write := range map[string]func(db *gorm.DB, a *stand.Account) error{
				"Update": func(db *gorm.DB, _ *stand.Account) error {
					return db.Model(&stand.Account{}).Where("id = 1").Update("balance", 5).Error
				},
				"Save":   func(db *gorm.DB, a *stand.Account) error { return db.Save(a).Error },
				"Delete": func(db *gorm.DB, a *stand.Account) error { return db.Delete(a).Error },
				"Touch":  func(db *gorm.DB, a *stand.Account) error { return gormlock.Touch(db, a) },
				"VerifyVersion": func(db *gorm.DB, a *stand.Account) error {
					return gormlock.VerifyVersion(db, a)
				},
			} {
				t.Run(name+"/"+how+"/"+what, func(t *testing.T) {
					t.Parallel()
					plain, a := stand.Stored(t, stand.Account{ID: 1})
					stand.MustDo(t, plain.Model(&a).Update("balance", 9))
					err := plain.Transaction(func(tx *gorm.DB) error { return write(db(tx), &a) })
					if err == nil || errors.Is(err, gormlock.ErrStale) || !strings.Contains(err.Error(), "name ") && what != "VerifyVersion" {
						t.Errorf("want the error of a contradiction, got %v", err)
					}
					stand.Equal(t, "row", stand.Row[stand.Account](t, plain, 1), stand.Account{ID: 1, Balance: 9, Version: 2})
				})
			}
		}
	}
	t.Run("the same twice", func(t *testing.T) {
		t.Parallel()
		db, a := stand.Stored(t, stand.Account{ID: 1})
		stand.MustDo(t, db.Clauses(one, gormlock.ExpectVersion(uint8(1))).Scopes(scope(gormlock.ExpectVersion(int32(1)))).Model(&a).Update("balance", 5))
		stand.MustDo(t, db.Clauses(ifMatch(2), ifMatch(2), gormlock.ExpectVersion(2), gormlock.ExpectVersion(sql.NullInt64{Int64: 2, Valid: true})).Model(&a).Update("balance", 6))
		unchanged := func() gormlock.VersionClause {
			return gormlock.IfUnchanged(&stand.Account{ID: 1, Balance: 6}, "balance")
		}
		stand.MustDo(t, db.Clauses(unchanged()).Scopes(scope(unchanged())).Model(&a).Update("balance", 7))
		again := func(names ...string) gormlock.VersionClause {
			return gormlock.IfUnchanged(&stand.Account{ID: 1, Balance: 7}, names...)
		}
		stand.MustDo(t, db.Clauses(again("balance", "note"), again("Note", "Balance")).Model(&a).Update("balance", 8))
		stand.MustDo(t, db.Clauses(gormlock.ExpectVersion(uint64(5)), gormlock.ExpectVersion(uint8(5))).Model(&a).Update("balance", 9))
	})
}
