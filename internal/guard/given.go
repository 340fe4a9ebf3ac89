package guard

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// expectedByCaller is the version that the caller named: in ExpectVersion, or in the struct, form or map that is written. It is nil if the caller
// named none.
func (p *plan) expectedByCaller(stmt *gorm.Statement) (*column.Value, error) {
	inDest, err := p.inDestination(stmt)
	if err != nil {
		return nil, err
	}
	if !p.isNamedByCaller(inDest) {
		return nil, fmt.Errorf("gormlock: %s.%s: a hook or a callback sets the version in what is updated, which would count as the one that the caller read: "+
			"an update moves it by itself, so take it out there", p.model.Schema.Name, p.version.Field.Name)
	}
	if p.intent == nil || !p.intent.Expects {
		return inDest, nil
	}
	v, err := p.version.expect(p.intent)
	return &v, err
}

// expect returns the version that a clause names.
func (v *versionGuard) expect(i *asked.Intent) (column.Value, error) {
	if named, are := i.Expected.(*asked.Tags); are {
		one, choice := chosenBy(named, v.Version)
		v.choice = choice
		return one, nil
	}
	if i.Expected == nil {
		return column.Value{}, fmt.Errorf("%w: ExpectVersion(nil) names no version, give it the one that was read", fault.ErrVersionMissing)
	}
	return v.Of(i.Expected)
}

func (p *plan) inDestination(stmt *gorm.Statement) (*column.Value, error) {
	v := &p.version
	if !isBare(stmt) {
		if value, assigned := statement.AssignedTo(stmt, v.Field.DBName); assigned && !p.intent.Touches() {
			return p.inMap(map[string]any{v.Field.DBName: value})
		}
	}
	switch dest := stmt.Dest.(type) {
	case map[string]any:
		return p.inMap(dest)
	case *map[string]any:
		return p.inMap(*dest)
	}
	if statement.SamePointer(stmt.Model, stmt.Dest) {
		return nil, nil
	}
	dest := reflect.ValueOf(stmt.Dest)
	for dest.Kind() == reflect.Pointer {
		dest = dest.Elem()
	}
	if dest.Kind() != reflect.Struct {
		return nil, nil
	}
	if dest.Type() == p.model.Schema.ModelType {
		value := v.Read(dest)
		if v.IsGiven(dest) || p.zeroIsGiven(stmt, p.hasWholeKey(dest)) { // with its key, the struct is a row that was read
			return &value, nil
		}
		return nil, nil
	}
	return p.inForm(stmt, dest)
}

// inForm returns the version in a struct whose type is not the model's.
func (p *plan) inForm(stmt *gorm.Statement, dest reflect.Value) (*column.Value, error) {
	form := &gorm.Statement{DB: stmt.DB}
	if err := form.Parse(stmt.Dest); err != nil {
		return nil, err
	}
	field := form.Schema.LookUpField(p.version.Field.DBName)
	if field == nil {
		return nil, nil
	}
	value, zero := field.ValueOf(stmt.Context, dest)
	given := !zero
	if of, holds := p.version.FormColumn(field); holds {
		given = of.IsGiven(dest) || p.zeroIsGiven(stmt, of.IsBare()) // a form has this field for nothing else
		if of.IsUnread(of.Read(dest)) {
			value = p.version.Unread()
		}
	}
	if !given {
		return nil, nil
	}
	v, err := p.version.Of(value)
	return &v, err
}

// zeroIsGiven reports whether an unset version counts as given: rows can have version 0, and the struct shows that it is meant, or Select names it.
// A "*" only says that zeros are written, and not which version is expected.
func (p *plan) zeroIsGiven(stmt *gorm.Statement, shown bool) bool {
	v := &p.version
	return v.ZeroIsLoaded() && (shown || statement.SelectNames(stmt, v.Field) && statement.ChosenByCaller(stmt).Names(v.Field.DBName))
}

func (p *plan) inMap(dest map[string]any) (*column.Value, error) {
	field := p.version.Field
	value, named := statement.Named(dest, field)
	if !named {
		return nil, nil
	}
	for name, other := range dest {
		if p.model.Schema.LookUpField(name) == field && !reflect.DeepEqual(value, other) {
			return nil, fmt.Errorf("gormlock: %s.%s: the map names the version twice, and differently: name it once", p.model.Schema.Name, field.Name)
		}
	}
	if value == nil {
		return nil, fmt.Errorf("gormlock: %s.%s: the version cannot be NULL: leave it out", p.model.Schema.Name, field.Name)
	}
	switch value.(type) {
	case clause.Expression, *gorm.DB, gorm.Valuer:
		return nil, fmt.Errorf("gormlock: %s.%s: the version cannot be an expression, an update moves it by itself: leave it out", p.model.Schema.Name, field.Name)
	}
	v, err := p.version.Of(value)
	return &v, err
}
