package match

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// takeBack corrects rows that have the key of a struct by chance: that struct was left out, and the server has given its key to a struct without
// one. This is only possible if fewer rows came back without a struct's key than there are structs without one. The content of the rows says which
// they are. If it does not, the row belongs to no struct, which is an error.
func (m *matching) takeBack(db *gorm.DB, rows []reflect.Value) error {
	keyless := m.open(true)
	suspects := m.suspects()
	if m.Behind || m.ByKey || len(m.left) >= len(keyless) || len(suspects) == 0 {
		return nil
	}
	m.spelled = make([]reflect.Value, len(m.Structs)) // nothing is asked yet
	if m.judge(suspects, keyless, nil) {
		return nil
	}
	if err := m.ask(db); err != nil {
		return err
	}
	spelled, err := m.spell(db, append(slices.Clone(keyless), suspects...))
	if err != nil {
		return err
	}
	m.spelled = spelled
	var unknown []reflect.Value
	m.judge(suspects, keyless, func(i int, taken bool) {
		if !taken {
			unknown = append(unknown, m.from[i])
		}
		m.from[i], m.keys[i] = reflect.Value{}, nil
	})
	m.left = slices.DeleteFunc(m.unmatched(rows), func(row reflect.Value) bool {
		return slices.ContainsFunc(unknown, func(other reflect.Value) bool { return other.Addr().Pointer() == row.Addr().Pointer() })
	})
	return nil
}

// suspects are the structs whose key a row has.
func (m *matching) suspects() (all []int) {
	for i := range m.Structs {
		if m.from[i].IsValid() {
			all = append(all, i)
		}
	}
	return all
}

// judge compares the rows of suspects with these and with the structs without a key. It reports whether each row belongs to its suspect. It calls
// wrong for each other row: taken says that it belongs to another struct, otherwise it is not known whose it is.
func (m *matching) judge(suspects, keyless []int, wrong func(i int, taken bool)) (right bool) {
	found := &matching{Upsert: m.Upsert, stmt: m.stmt, table: m.table, asked: m.asked, spelled: m.spelled}
	for _, i := range suspects {
		found.left = append(found.left, m.from[i])
	}
	open := append(slices.Clone(keyless), suspects...)
	all := found.compared(open, m.Inserted)
	among := func(fields []*schema.Field, whole bool) []*comparison {
		return slices.DeleteFunc(slices.Clone(all), func(c *comparison) bool {
			return !slices.Contains(fields, c.field) || !whole && !c.holdsAll(found, open)
		})
	}
	kept, inserted := among(m.Kept, false), among(m.Returned, m.table.AsSent) // the row of a struct without a key is new
	sorted := sortedBy(inserted, keyless)
	right = true
	for n, i := range suspects {
		fits := func(columns []*comparison, k int) bool {
			return !slices.ContainsFunc(columns, func(c *comparison) bool { return !c.holds(found, k, n) })
		}
		isOther := func(k int) bool {
			return fits(inserted, k) && slices.ContainsFunc(all, func(c *comparison) bool { return !c.field.PrimaryKey && !c.isSame(found, k, i) })
		}
		others := slices.ContainsFunc(sorted[nameOf(inserted, func(c *comparison) string { return c.found[n] })], isOther)
		switch own := fits(kept, i); {
		case own && !others:
		case wrong == nil:
			return false
		default:
			right = false
			wrong(i, others && !own)
		}
	}
	return right
}

// sortedBy groups structs by their values in the columns that can be compared by text.
func sortedBy(columns []*comparison, structs []int) map[string][]int {
	sorted := map[string][]int{}
	for _, i := range structs {
		name := nameOf(columns, func(c *comparison) string { return c.structs[i] })
		sorted[name] = append(sorted[name], i)
	}
	return sorted
}
