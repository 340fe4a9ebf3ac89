package unlinked

import (
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// loss is a step that took an association from structs. A rollback does not restore it.
type loss struct{ *install.Loss }

// Lose implements journal.Step, as does Undo: the statement may have been undone.
func (l loss) Lose() { l.Undo() }

// unlinking is a statement that removes rows from owners by one relation.
type unlinking struct {
	relation *schema.Relationship
	owners   clause.IN // the keys of the owners
	taken    clause.IN // the keys of the removed rows; nil: there is no such condition
	named    bool      // there is such a condition
}

// note remembers from which structs the statement removes a belongs-to.
func note(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.RowsAffected == 0 {
		return // GORM empties nothing, or the rows did not refer to it
	}
	all := slices.DeleteFunc(unlinkingsOf(db), func(u unlinking) bool { return u.relation.Type != schema.BelongsTo })
	if len(all) == 0 || !statement.InAssociationDelete() {
		return
	}
	l := loss{&install.Loss{}}
	if j := journal.Of(stmt); j != nil {
		j.Keep(l)
	} else if statement.Transaction(stmt) != nil {
		l.Undo() // perhaps: gormlock does not see the end of the transaction
	}
	for _, u := range all {
		for _, key := range keysIn(u.owners) {
			owner := install.Owner{Of: u.relation.Schema.ModelType, Relation: u.relation.Name, Key: statement.KeyName(key)}
			install.Of(db).Unlinked.Note(owner, stmt.Table, l.Loss)
		}
	}
}

// Refuse refuses a statement of Association(…) that would take nothing away, or that must not follow the one before it.
func Refuse(db *gorm.DB) {
	refuseToGoOn(db)
	refuseReplaced(db)
	refuseNothing(db)
}

// refuseNothing refuses an Association(…).Delete of a relation to one struct if no given struct has a key: it would remove nothing.
func refuseNothing(db *gorm.DB) {
	if db.Error != nil || install.Of(db) == nil || !IsUnlinking(db.Statement) {
		return
	}
	var of *schema.Relationship
	for _, u := range unlinkingsOf(db) {
		if u.named && len(u.taken.Values) == 0 {
			of = u.relation
		}
	}
	if of == nil || ofMany(db, of) || !statement.InAssociationDelete() {
		return
	}
	fault.Add(db, fmt.Errorf("gormlock: %s: Association(%q).Delete was given no struct that has a key, so it would take nothing away. If an earlier Delete has "+
		"emptied the struct, read it again, in the transaction", of.Schema.Name, of.Name))
}

// ofMany reports whether the statement may be for a has-many, which may get an empty list.
func ofMany(db *gorm.DB, of *schema.Relationship) (is bool) {
	if of.Type != schema.HasOne {
		return false
	}
	statement.EachParsed(db, func(s *schema.Schema) bool {
		is = is || slices.ContainsFunc(s.Relationships.HasMany, func(r *schema.Relationship) bool {
			return r.FieldSchema.Table == of.FieldSchema.Table && slices.EqualFunc(ownersColumns(r), ownersColumns(of), isSameColumn)
		})
		return !is
	})
	return is
}

func isSameColumn(a, b *schema.Reference) bool { return a.ForeignKey.DBName == b.ForeignKey.DBName }

// IsUnlinking reports whether the statement has the form of those that Association(…).Delete, Replace and Clear make.
func IsUnlinking(stmt *gorm.Statement) bool {
	if stmt.Schema == nil || stmt.DryRun {
		return false
	}
	if slices.Contains(stmt.BuildClauses, "SET") {
		columns, is := stmt.Dest.(map[string]any)
		for _, value := range columns {
			is = is && value == nil
		}
		if !is || !stmt.SkipHooks || len(columns) == 0 {
			return false
		}
	}
	return true
}

// unlinkingsOf returns what a statement may be that removes a belongs-to, or an only child.
func unlinkingsOf(db *gorm.DB) (all []unlinking) {
	stmt := db.Statement
	if !IsUnlinking(stmt) {
		return nil
	}
	in := keyConditions(stmt)
	if len(in) == 0 {
		return nil
	}
	columns, updates := stmt.Dest.(map[string]any)
	for _, relation := range stmt.Schema.Relationships.BelongsTo {
		u := unlinking{relation: relation}
		if updates && u.isAsked(in, stmt.Schema.PrimaryFieldDBNames, namesOf(ownersColumns(relation))) && has(columns, ownersColumns(relation)) && u.named && isChecked(db, relation) {
			all = append(all, u)
		}
	}
	statement.EachParsed(db, func(s *schema.Schema) bool {
		for _, relation := range s.Relationships.HasOne {
			u := unlinking{relation: relation}
			if relation.FieldSchema.Table == stmt.Schema.Table && u.isAsked(in, namesOf(ownersColumns(relation)), stmt.Schema.PrimaryFieldDBNames) &&
				(!updates || has(columns, ownersColumns(relation))) && isChecked(db, relation) {
				all = append(all, u)
			}
		}
		return true
	})
	return all
}

// isChecked reports whether one of the models of a relation has a version.
func isChecked(db *gorm.DB, relation *schema.Relationship) bool {
	return model.OfSchema(db, relation.Schema).Column != nil || model.OfSchema(db, relation.FieldSchema).Column != nil
}

// ownersColumns are the references that hold the key of the owner, or of its belongs-to.
func ownersColumns(relation *schema.Relationship) (all []*schema.Reference) {
	for _, ref := range relation.References {
		if ref.PrimaryValue == "" {
			all = append(all, ref)
		}
	}
	return all
}

func namesOf(refs []*schema.Reference) []string {
	names := make([]string, len(refs))
	for i, ref := range refs {
		names[i] = ref.ForeignKey.DBName
	}
	return names
}

func has(columns map[string]any, refs []*schema.Reference) bool {
	return !slices.ContainsFunc(refs, func(ref *schema.Reference) bool {
		_, is := columns[ref.ForeignKey.DBName]
		return !is
	})
}

// isAsked reports whether the conditions name owners by these columns.
func (u *unlinking) isAsked(in []clause.IN, owners, taken []string) (is bool) {
	for _, one := range in {
		switch names := columnsOf(one); {
		case slices.Equal(names, owners) && len(one.Values) > 0:
			u.owners, is = one, true
		case slices.Equal(names, taken):
			u.taken, u.named = one, true
		}
	}
	return is
}

// keyConditions are the conditions on lists of keys that GORM has made from structs. GORM qualifies them with the table's own name.
func keyConditions(stmt *gorm.Statement) (all []clause.IN) {
	where, _ := stmt.Clauses["WHERE"].Expression.(clause.Where)
	var collect func([]clause.Expression)
	collect = func(exprs []clause.Expression) {
		for _, expr := range exprs {
			switch expr := expr.(type) {
			case clause.IN:
				if len(columnsOf(expr)) > 0 {
					all = append(all, expr)
				}
			case clause.AndConditions:
				collect(expr.Exprs)
			case clause.Where:
				collect(expr.Exprs)
			}
		}
	}
	collect(where.Exprs)
	return all
}

// columnsOf are the columns of such a condition.
func columnsOf(in clause.IN) (names []string) {
	add := func(column clause.Column) {
		if column.Table != "" && column.Table != clause.CurrentTable {
			names = append(names, column.Name)
		}
	}
	switch column := in.Column.(type) {
	case clause.Column:
		add(column)
	case []clause.Column:
		for _, one := range column {
			add(one)
		}
	}
	return names
}

// keysIn are the keys in such a condition.
func keysIn(in clause.IN) [][]any {
	keys := make([][]any, len(in.Values))
	for i, value := range in.Values {
		if _, several := in.Column.([]clause.Column); several {
			keys[i], _ = value.([]any)
		} else {
			keys[i] = []any{value}
		}
	}
	return keys
}
