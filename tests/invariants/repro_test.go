package invariants

import (
	"fmt"
	"reflect"
	"strings"
)

// repro is the cell as a program.
func (c *cell) repro() string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, "\t"+format+"\n", args...) }
	say("%s", typeText(c.shape.model))
	say("// configuration: %s", c.config)
	first := ""
	if c.state.first {
		first = ", at its first version"
	}
	say("// row: %s%s", show(fmt.Sprintf("%+v", c.newRow(c.n, c.state.first).Elem().Interface())), first)
	say("var x T; db.First(&x, key)")
	if c.foreign {
		row := c.newRow(c.n, false)
		c.shape.key(row.Elem(), c.n, true)
		say("x.ID = %q // as the program spells it", c.shape.keyOf(row)["id"])
	}
	if c.form.two {
		say("var y T; db.First(&y, key of another row)")
	}
	if c.state.code != "" {
		say("// %s", c.state.code)
	}
	code := c.form.code
	if c.form.beside {
		say("// beside it stands a row with the same values under another key")
		code = strings.ReplaceAll(code, ".CONDITION", c.condition().code)
	}
	say("%s", strings.ReplaceAll(c.scope.code, "STATEMENT", "{ "+code+" }"))
	say("// the statement said: %v", c.err)
	for _, v := range c.found {
		say("// %s: %s", v.rule, strings.ReplaceAll(v.what, "\n", " "))
	}
	return b.String()
}

// typeText is the declaration of a model, without what every model has.
func typeText(t reflect.Type) string {
	var fields []string
	for i := range t.NumField() {
		f := t.Field(i)
		tag := ""
		if f.Tag != "" {
			tag = " `" + string(f.Tag) + "`"
		}
		name := f.Name + " "
		if f.Anonymous {
			name = ""
		}
		fields = append(fields, name+strings.ReplaceAll(f.Type.String(), "invariants.", "")+tag)
	}
	return "type T struct { " + strings.Join(fields, "; ") + " } // " + t.Name()
}
