package rollbacks_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A rollback reaches the structs of an array of pointers. The program may have put others into it since, or nil.
func TestRollback_ofAnArrayThatChanged(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	for name, change := range map[string]func(list *[2]*stand.Account){
		"":        func(*[2]*stand.Account) {},
		"swapped": func(list *[2]*stand.Account) { list[0], list[1] = list[1], list[0] },
		"other":   func(list *[2]*stand.Account) { list[1] = &stand.Account{ID: list[1].ID, Balance: 9, Version: 7} },
		"nil":     func(list *[2]*stand.Account) { list[0] = nil },
	} {
		for write, does := range map[string]func(tx *gorm.DB, list *[2]*stand.Account) *gorm.DB{
			"Create": func(tx *gorm.DB, list *[2]*stand.Account) *gorm.DB { return tx.Create(list) },
			"Save":   func(tx *gorm.DB, list *[2]*stand.Account) *gorm.DB { return tx.Save(list) },
			"Delete": func(tx *gorm.DB, list *[2]*stand.Account) *gorm.DB { return tx.Delete(list) },
		} {
			list := [2]*stand.Account{{Balance: 1}, {Balance: 2}}
			if write != "Create" {
				stand.MustDo(t, db.Create(list[0]))
				stand.MustDo(t, db.Create(list[1]))
			}
			given, was := list, [2]stand.Account{*list[0], *list[1]}
			stand.InTx(t, db, func(tx *gorm.DB) {
				stand.MustDo(t, does(tx, &list))
				change(&list)
			})
			if *given[0] != was[0] || *given[1] != was[1] {
				t.Errorf("%s, %s: %+v and %+v, want %+v", write, name, *given[0], *given[1], was)
			}
			if other := list[1]; name == "other" && (other.Version != 7 || other.Balance != 9) {
				t.Errorf("%s, %s: the other is %+v", write, name, *other)
			}
		}
	}
}

// An array of one pointer is the pointer itself in memory, and may be passed by value.
func TestRollback_ofAnArrayOfOne(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	for write, does := range map[string]func(tx *gorm.DB, a *stand.Account) *gorm.DB{
		"Create": func(tx *gorm.DB, a *stand.Account) *gorm.DB { return tx.Create([1]*stand.Account{a}) },
		"Save":   func(tx *gorm.DB, a *stand.Account) *gorm.DB { return tx.Save([1]*stand.Account{a}) },
		"Update": func(tx *gorm.DB, a *stand.Account) *gorm.DB {
			return tx.Model([1]*stand.Account{a}).Update("balance", 4)
		},
		"Delete": func(tx *gorm.DB, a *stand.Account) *gorm.DB { return tx.Delete([1]*stand.Account{a}) },
	} {
		a := stand.Account{Balance: 1}
		if write != "Create" {
			stand.MustDo(t, db.Create(&a))
		}
		was := a
		stand.InTx(t, db, func(tx *gorm.DB) { stand.MustDo(t, does(tx, &a)) })
		stand.Equal(t, write, a, was)
	}
}
