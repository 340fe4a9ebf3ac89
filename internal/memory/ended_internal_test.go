package memory

import (
	"testing"
	"weak"

	"github.com/gormlock/gormlock/internal/journal"
)

// All spellings of a key have one form in common, and different keys do not.
func TestSpelling(t *testing.T) {
	t.Parallel()
	const uuid = "0a1b2c3d-0a1b-2c3d-0a1b-0a1b2c3d4e5f"
	for name, all := range map[string][]string{
		"a uuid":         {uuid, "0A1B2C3D-0A1B-2C3D-0A1B-0A1B2C3D4E5F", "{" + uuid + "}", "0a1b2c3d0a1b2c3d0a1b0a1b2c3d4e5f", "urn:uuid:" + uuid},
		"a numeric":      {"1.5", "1.50", "+1.5", "01.500", " 1.5", "15e-1", "0.15E+1", "1.5e0", "1_5e-1"},
		"a whole number": {"100", "100.0", "100.", "0100", "1e2", "1000e-1"},
		"zero":           {"0", "0.0", "00"},
		"below zero":     {"-1.5", "-01.50"},
		"a text":         {"Ann", "ann ", "ANN"},
		"several parts":  {"2:ab3:1.5", "4:AB  4:1.50"},
		"no parts":       {"2:abc", "2:ABC"},
		"nothing":        {""},
		"signs":          {"+-"},
	} {
		for _, one := range all {
			if got, want := (Key{name: one}).spelling(), (Key{name: all[0]}).spelling(); got != want {
				t.Errorf("%s: %q is %q, not %q", name, one, got.name, want.name)
			}
		}
	}
	for _, two := range [][2]string{{"1.5", "-1.5"}, {"1.5", "15"}, {"10", "1"}, {"1", "0.1"}, {"a-b", "ab"}, {"2:ab3:1.5", "3:ab13:.50"}, {"1.5.0", "1.5"}, {"1e2", "1e3"}, {"e", ""}, {"1e", "1"}, {"1e9999", "1"}, {"1e1e1", "1e2"}} {
		if (Key{name: two[0]}).spelling() == (Key{name: two[1]}).spelling() {
			t.Errorf("%q and %q are one", two[0], two[1])
		}
	}
	if (Key{n: 7}).spelling() != (Key{n: 7}) {
		t.Error("a number is another")
	}
}

// A struct of an ended transaction gets what a rollback leaves in it: alone, and once for each step, however often it went astray.
func TestRecover_ofACopy(t *testing.T) { //nolint:paralleltest // it has strays
	m := modelOf(t, &item{})
	for name, more := range map[string]func(all *journal.Astray, a, b *item){
		"two writes": func(*journal.Astray, *item, *item) {},
		"seen again": func(all *journal.Astray, a, b *item) {
			other := journal.Astray{Of: all.Of}
			StraySeen(&other, m, Table{}, at(a))
			StraySeen(&other, m, Table{}, at(b))
			*all = journal.Astray{Of: all.Of, Undone: true}
		},
	} {
		of := &journal.Ever{}
		one := item{ID: 1, Name: "one", Version: 1}
		first := written(t, m, &one, func(i *item) { i.Version++ })
		two := one
		second := written(t, m, &two, func(i *item) { i.Version++ })
		all := &journal.Astray{Of: of, Undone: true}
		more(all, &one, &two)
		first.Stray(all)
		second.Stray(all)
		if Recover(m, at(&two)); two.Version != 1 || one.Version != 2 || !IsStray(at(&one)) {
			t.Errorf("%s: they are %+v and %+v", name, two, one)
		}
		if Recover(m, at(&one)); one.Version != 1 || IsStray(at(&one)) {
			t.Errorf("%s: then it is %+v", name, one)
		}
		ForgetStray(at(&one))
		ForgetStray(at(&two))
	}
}

// A struct of which only the place is known is left alone. A struct that a rollback restores is no longer astray.
func TestForgetStrays(t *testing.T) { //nolint:paralleltest // it has strays
	m, of := modelOf(t, &item{}), &journal.Ever{}
	one, other := item{ID: 1, Version: 3}, item{ID: 2, Version: 3}
	all := &journal.Astray{Of: of}
	StraySeen(all, m, Table{}, at(&one))
	if Recover(m, at(&one)); one.Version != 3 || IsStray(at(&one)) {
		t.Errorf("it is %+v", one)
	}
	StraySeen(all, m, Table{}, at(&one))
	StraySeen(&journal.Astray{Of: &journal.Ever{}}, m, Table{}, at(&other))
	p := NewPlaces()
	p.See(m, Table{}, at(&one))
	p.See(m, Table{}, at(&other))
	if p.ForgetStrays(of); IsStray(at(&one)) || !IsStray(at(&other)) {
		t.Error("another transaction's is forgotten")
	}
	ForgetStray(at(&other))
}

// A struct that is used after it went astray is its program's. The transaction is told of each use, until it is undone or forgotten.
func TestForget_again(t *testing.T) { //nolint:paralleltest // it has strays
	m := modelOf(t, &item{})
	for name, end := range map[string]func(p *Places, of *journal.Ever, one *item){
		"undone": func(p *Places, of *journal.Ever, _ *item) { p.ForgetStrays(of) },
		"forgotten": func(_ *Places, _ *journal.Ever, one *item) {
			LoosenRead(at(one))
			strays.at[placeAt(one)].alive = weak.Pointer[byte]{}
			sweep()
		},
	} {
		one, of := item{ID: 1, Version: 3}, &journal.Ever{}
		StraySeen(&journal.Astray{Of: of}, m, Table{}, at(&one))
		p := NewPlaces()
		p.See(m, Table{}, at(&one))
		p.all = of
		for id := int64(1); id < 4; id++ {
			one.ID = id
			if Forget(at(&one)); p.used(at(&one)) == 0 || IsStray(at(&one)) {
				t.Errorf("%s: row %d is not the program's", name, id)
			}
		}
		if one.ID = 4; p.used(at(&one)) > 0 {
			t.Errorf("%s: a row is the program's that it has not used", name)
		}
		if end(p, of, &one); HasStrays() {
			t.Errorf("%s: it is known still", name)
		}
	}
}

func placeAt(one *item) placeOf { where, _ := whereIs(at(one)); return where }
