package column

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// Fence is the column of a model that holds the token of its last writer.
type Fence struct {
	Version             // how the field holds its number
	Topic        string // the first part of the keys' names; "": any key
	Name, column string // "fence", "reports"."fence"
	table        string
}

// ParseFence reads the words after `fence` in the tag of a field.
func ParseFence(db *gorm.DB, field *schema.Field, words []string) (*Fence, error) {
	c := &Fence{Version: Version{Field: field}, table: statement.NameInStatement(field.Schema.Table)}
	switch {
	case field.DBName == "":
		return nil, fmt.Errorf("a fence field must be a column")
	case field.PrimaryKey:
		return nil, fmt.Errorf("a fence field cannot be the primary key")
	case len(field.Schema.PrimaryFields) == 0:
		return nil, fmt.Errorf("a fenced model needs a primary key")
	case field.Serializer != nil || !c.shapedAs(field.FieldType) || !holdsTokens(field.FieldType):
		return nil, fmt.Errorf("a fence field must be an int64, a pointer to one or a sql.NullInt64, not %s", field.FieldType)
	case !field.Creatable || !field.Updatable || !field.Readable:
		return nil, fmt.Errorf("a fence column must be readable and writable: remove the permission from the tag `gorm`")
	case field.AutoCreateTime > 0 || field.AutoUpdateTime > 0:
		return nil, fmt.Errorf("a fence field cannot be a time that GORM sets")
	}
	column := strings.ToLower(db.DataTypeOf(field))
	largest, decided := dialect.Of(db).Largest(column)
	switch {
	case decided && largest < math.MaxInt64:
		return nil, fmt.Errorf("tokens need 64 bits and the column is %s: give it the type bigint", column)
	case !statement.IsPostgres(db), strings.HasPrefix(column, "bigint"), column == "int8", strings.HasPrefix(column, "numeric"):
	default:
		return nil, fmt.Errorf("tokens need 64 bits and the column is %s: give it the type bigint", column)
	}
	for _, word := range words {
		topic, isKey := strings.CutPrefix(strings.TrimSpace(word), "key=")
		switch {
		case !isKey:
			return nil, fmt.Errorf("unknown word %q after fence: only key= may follow, with the first part of the key's name", word)
		case topic == "":
			return nil, fmt.Errorf("key= names nothing: give the first part of the key's name, or leave it out")
		case c.Topic != "":
			return nil, fmt.Errorf("a second key %q: a fence column has only one", topic)
		}
		c.Topic = topic
	}
	stmt := &gorm.Statement{DB: db, Table: c.table}
	c.Name = stmt.Quote(clause.Column{Name: field.DBName})
	c.column = stmt.Quote(clause.Column{Table: c.table, Name: field.DBName})
	return c, nil
}

// holdsTokens reports whether the type, which shapedAs has accepted, holds a signed integer of 64 bits.
func holdsTokens(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer:
		t = t.Elem()
	case reflect.Struct:
		t = t.Field(0).Type
	}
	return (t.Kind() == reflect.Int64 || t.Kind() == reflect.Int) && t.Bits() == 64
}

// In is the column in the statement, which may call its table by another name.
func (c *Fence) In(stmt *gorm.Statement) string {
	if stmt.Table == c.table {
		return c.column
	}
	return statement.Quoted(stmt, stmt.Table, c.Field.DBName)
}

// TokenOf picks the token that guards a statement: one that a clause names, otherwise one in the statement's context.
func (c *Fence) TokenOf(stmt *gorm.Statement, named []fence.Token) (fence.Token, error) {
	from := "Fence names"
	if len(named) == 0 {
		named, from = fence.FromContext(stmt.Context), "the context carries"
	}
	var token fence.Token
	fitting := 0
	for i := range named {
		if c.fits(named[i]) {
			token = named[i]
			fitting++
		}
	}
	if fitting == 1 {
		return token, nil
	}
	wanted := "token"
	if c.Topic != "" {
		wanted = fmt.Sprintf("token of a key whose name begins with %q", c.Topic)
	}
	switch {
	case fitting > 1:
		named = slices.DeleteFunc(named, func(t fence.Token) bool { return !c.fits(t) })
		return fence.Token{}, fmt.Errorf("%w: %s: %s %d tokens that fit, %s: name one with Fence",
			fault.ErrFenceMissing, stmt.Table, from, fitting, listed(named))
	case len(named) > 0:
		return fence.Token{}, fmt.Errorf("%w: %s: %s no %s, but %s: name one with Fence", fault.ErrFenceMissing, stmt.Table, from, wanted, listed(named))
	}
	return fence.Token{}, fmt.Errorf("%w: %s: %s no %s: use the context of a lock that has one, or Fence, or IgnoreFence",
		fault.ErrFenceMissing, stmt.Table, from, wanted)
}

// InContext is the fitting token in the statement's context. If several fit, that is an error.
func (c *Fence) InContext(stmt *gorm.Statement) (token fence.Token, fits bool, err error) {
	if !slices.ContainsFunc(fence.FromContext(stmt.Context), c.fits) {
		return fence.Token{}, false, nil
	}
	token, err = c.TokenOf(stmt, nil)
	return token, err == nil, err
}

// fits reports whether the token may guard writes of this column.
func (c *Fence) fits(token fence.Token) bool {
	return !token.IsZero() && (c.Topic == "" || token.Topic == c.Topic)
}

// listed writes tokens for an error.
func listed(tokens []fence.Token) string {
	var b strings.Builder
	for i, token := range tokens {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(token.String())
	}
	return b.String()
}
