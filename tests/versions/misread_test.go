package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// writesThatReturn write the account 1, with what RETURNING asks for.
var writesThatReturn = map[string]func(db *gorm.DB, a *stand.Account) error{
	"Create": func(db *gorm.DB, a *stand.Account) error { *a = stand.Account{Balance: 5}; return db.Create(a).Error },
	"Create of a slice": func(db *gorm.DB, a *stand.Account) error {
		all := []stand.Account{{Balance: 5}}
		err := db.Create(&all).Error
		*a = all[0]
		return err
	},
	"Save": func(db *gorm.DB, a *stand.Account) error { a.Balance = 5; return db.Save(a).Error },
	"Save of a slice": func(db *gorm.DB, a *stand.Account) error {
		a.Balance = 5
		return db.Save([]*stand.Account{a}).Error
	},
	"an upsert": func(db *gorm.DB, a *stand.Account) error {
		a.Balance = 5
		return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(a).Error
	},
	"Update": func(db *gorm.DB, a *stand.Account) error { return db.Model(a).Update("balance", 5).Error },
	"Update of rows, one": func(db *gorm.DB, a *stand.Account) error {
		*a = stand.Account{}
		return db.Model(a).Where("id = 1").Update("balance", 5).Error
	},
	"Update of rows": func(db *gorm.DB, a *stand.Account) error {
		all, err := []stand.Account{}, error(nil)
		if err = db.Model(&all).Where("id = 1").Update("balance", 5).Error; len(all) > 0 {
			*a = all[0]
		}
		return err
	},
	"Delete": func(db *gorm.DB, a *stand.Account) error { return db.Delete(a).Error },
	"Delete of rows": func(db *gorm.DB, a *stand.Account) error {
		all, err := []stand.Account{}, error(nil)
		if err = db.Where("id = 1").Delete(&all).Error; len(all) > 0 {
			*a = all[0]
		}
		return err
	},
}

// GORM reads what RETURNING names as the version, or as a key, into that field.
func TestReturning_thatNamesSomethingElse(t *testing.T) {
	t.Parallel()
	of := func(columns ...clause.Column) clause.Returning {
		return clause.Returning{Columns: append([]clause.Column{{Name: "id"}}, columns...)}
	}
	raw := func(text string) clause.Returning { return of(clause.Column{Name: text, Raw: true}) }
	refused := map[string]clause.Expression{
		"an alias":         of(clause.Column{Name: "balance", Alias: "version"}),
		"of the field":     of(clause.Column{Name: "balance", Alias: "Version"}),
		"as it is found":   of(clause.Column{Name: "balance", Alias: "VERSION"}),
		"a key":            clause.Returning{Columns: []clause.Column{{Name: "balance", Alias: "id"}}},
		"the field of one": clause.Returning{Columns: []clause.Column{{Name: "balance", Alias: "ID"}}},
		"of another table": of(clause.Column{Table: "old", Name: "version"}),
		"all of another":   raw("old.*"),
		"text":             raw("balance + 1 AS version"),
		"text without AS":  raw("balance version"),
		"two of one text":  raw("note, balance AS version"),
		"a cast":           raw("(balance)::version"),
		"a CASE":           raw("CASE WHEN true THEN balance ELSE version END"),
		"a sub-query":      raw("(SELECT max(version) FROM accounts)"),
		"an own clause":    ownReturning{"id, balance AS version"},
	}
	allowed := map[string]clause.Expression{
		"all":         clause.Returning{},
		"the star":    clause.Returning{Columns: []clause.Column{{Name: "*", Raw: true}}},
		"the version": of(clause.Column{Name: "version"}, clause.Column{Name: "balance"}, clause.Column{Name: "note"}),
		"its table":   raw("accounts.version, balance, note"),
		"its name":    raw(`version AS "Version", balance, note`),
		"others":      of(clause.Column{Name: "balance", Alias: "then"}, clause.Column{Name: "lower(note) AS words", Raw: true}, clause.Column{Name: "version"}),
	}
	for how, write := range writesThatReturn {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&stand.Account{}})
			fill := func() stand.Account {
				t.Helper()
				stand.Must(t, db.Exec("TRUNCATE accounts RESTART IDENTITY").Error)
				return stand.Made(t, db, stand.Account{Balance: 1})
			}
			for name, returning := range refused {
				a := fill()
				err := write(db.Clauses(returning).Session(&gorm.Session{}), &a)
				if err == nil || !strings.Contains(err.Error(), "RETURNING has") {
					t.Errorf("%s: %v", name, err)
				}
				stand.Equal(t, name, stand.Row[stand.Account](t, db, 1), stand.Account{ID: 1, Balance: 1, Version: 1})
				if a.Version > 1 || a.ID > 1 {
					t.Errorf("%s: the struct has got %+v", name, a)
				}
			}
			for name, returning := range allowed {
				a := fill()
				stand.Must(t, write(db.Clauses(returning).Session(&gorm.Session{}), &a))
				if strings.HasPrefix(how, "Delete") {
					continue
				}
				if row := stand.Row[stand.Account](t, db, a.ID); row.Version != a.Version || row.Balance != 5 {
					t.Errorf("%s: the struct is %+v, the row %+v", name, a, row)
				}
			}
		})
	}
}

// ownReturning is a RETURNING of the caller's own type.
type ownReturning struct{ list string }

func (ownReturning) Name() string                    { return "RETURNING" }
func (r ownReturning) MergeClause(to *clause.Clause) { to.Expression = r }
func (r ownReturning) Build(to clause.Builder)       { _, _ = to.WriteString(r.list) }

// RETURNING * has the columns of the tables in FROM too.
func TestReturning_allWithFrom(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	stand.Must(t, db.Exec("CREATE TABLE raises (id bigint, account_id bigint, version bigint); INSERT INTO raises VALUES (7, 1, 99)").Error)
	stand.Made(t, db, stand.Account{Balance: 1})
	from := db.Clauses(clause.From{Tables: []clause.Table{{Name: "raises"}}}).Where("raises.account_id = accounts.id").Session(&gorm.Session{})
	for name, returning := range map[string]clause.Returning{
		"nothing":  {},
		"the star": {Columns: []clause.Column{{Name: "*", Raw: true}}},
		"beside":   {Columns: []clause.Column{{Name: "note"}, {Name: "*", Raw: true}}},
	} {
		var all []stand.Account
		stand.Must(t, from.Model(&all).Clauses(returning).Update("balance", gorm.Expr("balance + 1")).Error)
		stand.Equal(t, name, all[0], stand.Row[stand.Account](t, db, 1))
		var one stand.Account
		stand.Must(t, from.Model(&one).Clauses(returning).Update("balance", gorm.Expr("balance + 1")).Error)
		stand.Equal(t, name+", one", one, stand.Row[stand.Account](t, db, 1))
	}
	var all []stand.Account
	err := from.Model(&all).Clauses(clause.Returning{Columns: []clause.Column{{Table: "raises", Name: "version"}}}).Update("balance", 9).Error
	if err == nil || !strings.Contains(err.Error(), "RETURNING has") {
		t.Errorf("%v, %+v", err, all)
	}
}
