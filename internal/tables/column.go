package tables

import (
	"regexp"
	"strings"
)

// Column is one column of a table, as its DDL or the server says.
type Column struct {
	Name    string
	Type    string // as the server writes it
	NotNull bool
	Default string // an expression, "" for none
}

// columnLine is a line of the DDL that makes a column.
var columnLine = regexp.MustCompile(`^\s*(\w+)\s+([a-z]+)( PRIMARY KEY)?\s*( NOT NULL)?( DEFAULT ([^,]+?))?,?\s*(?:--.*)?$`)

// long maps names of types to the server's names.
var long = map[string]string{"timestamptz": "timestamp with time zone"}

// Columns are the columns that the DDL makes.
func (t Table) Columns() []Column {
	body, _, _ := strings.Cut(t.DDL, "\n)")
	var columns []Column
	for line := range strings.Lines(body) {
		m := columnLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil { // the first line, and the key
			continue
		}
		c := Column{Name: m[1], Type: m[2], NotNull: m[3] != "" || m[4] != "", Default: m[6]}
		if name := long[c.Type]; name != "" {
			c.Type = name
		}
		columns = append(columns, c)
	}
	return columns
}

// Definition is the text that adds a column which a table of an earlier version may lack, and "" for other columns.
func (t Table) Definition(column string) string {
	for _, definition := range t.Later {
		if name, _, _ := strings.Cut(definition, " "); name == column {
			return definition
		}
	}
	return ""
}

// Indexes are the statements that make the indexes other than the key, by name.
func (t Table) Indexes() map[string]string {
	statements := map[string]string{}
	_, rest, _ := strings.Cut(t.DDL, ";\n")
	for statement := range strings.SplitSeq(rest, ";\n") {
		for _, name := range t.Index {
			if strings.Contains(statement, " "+name+" ") {
				statements[name] = statement
			}
		}
	}
	return statements
}

// Deviation is one way in which a column of a table that exists is not what gormlock needs.
type Deviation struct {
	Column string
	Says   string
	IsType bool // the type differs: the server converts many types, and says so if it cannot
	// Fix returns statements, for a table by its name, that repair it without a loss. It is nil if a person must decide.
	Fix  func(table string) []string
	Cure func(table string) string // what to do if there is no Fix
}

// Deviations compares the columns of a table with the required ones. It does not report missing columns. A column that gormlock does not know is a
// deviation if gormlock could not insert rows because of it.
func (t Table) Deviations(found []Column) []Deviation {
	var all []Deviation
	wanted := map[string]Column{}
	for _, c := range t.Columns() {
		wanted[c.Name] = c
	}
	for _, is := range found {
		want, known := wanted[is.Name]
		if !known {
			if is.NotNull && is.Default == "" {
				all = append(all, is.alter("is no column of gormlock's and refuses NULL, so no row can be inserted", "DROP NOT NULL", false))
			}
			continue
		}
		if is.Type != want.Type {
			d := is.alter("is "+is.Type+", not "+want.Type, "TYPE "+want.Type+" USING "+is.Name+"::"+want.Type, false)
			d.IsType = true
			all = append(all, d)
		}
		if want.Default != "" && !sameDefault(is.Default, want.Default) {
			says := "has no default, it must be " + want.Default
			if is.Default != "" {
				says = "has the default " + is.Default + ", not " + want.Default
			}
			all = append(all, is.alter(says, "SET DEFAULT "+want.Default, true))
		}
		switch {
		case is.NotNull && !want.NotNull:
			all = append(all, is.alter("is NOT NULL, and must take NULL", "DROP NOT NULL", true))
		case want.NotNull && !is.NotNull:
			d := is.alter("takes NULL", "SET NOT NULL", true)
			if want.Default != "" {
				alter := d.Fix
				d.Fix = func(table string) []string {
					return append([]string{"UPDATE " + table + " SET " + is.Name + " = " + want.Default + " WHERE " + is.Name + " IS NULL;"}, alter(table)...)
				}
			}
			all = append(all, d)
		}
	}
	return all
}

// alter is a deviation that an ALTER COLUMN repairs, safely or not.
func (c Column) alter(says, how string, safe bool) Deviation {
	d := Deviation{Column: c.Name, Says: says}
	statement := func(table string) string {
		return "ALTER TABLE " + table + " ALTER COLUMN " + quoted(c.Name) + " " + how + ";"
	}
	if safe {
		d.Fix = func(table string) []string { return []string{statement(table)} }
	} else {
		d.Cure = statement
	}
	return d
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// sameDefault reports whether the server's text of a default means what the DDL says. With quote_all_identifiers the server writes
// "now"().
func sameDefault(is, want string) bool {
	is, _, _ = strings.Cut(strings.ReplaceAll(is, `"`, ""), "::")
	return strings.EqualFold(is, want) || want == "now()" && strings.EqualFold(is, "CURRENT_TIMESTAMP")
}

// ColumnsOf selects the columns of the table with the oid $1: the fields of a [Column] in their order. A generated column counts as having a
// default.
var ColumnsOf = `SELECT a.attname::text, ` + TypeName("a.atttypmod") + `, a.attnotnull,
	coalesce(pg_get_expr(d.adbin, d.adrelid), CASE WHEN a.attidentity <> '' THEN 'identity' ELSE '' END)
	FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
	WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`

// TypeName is the name of the type of a column of pg_attribute AS a. modifier is a.atttypmod, or NULL for the bare name. With quote_all_identifiers
// the server quotes the name, although its own types need no quotes.
func TypeName(modifier string) string {
	name := "format_type(a.atttypid, " + modifier + ")"
	return "CASE WHEN a.atttypid < 16384 THEN replace(" + name + `, '"', '') ELSE ` + name + " END"
}
