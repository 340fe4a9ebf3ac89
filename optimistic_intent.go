package gormlock

import (
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/fence"
)

// versionIntent is what the clauses of one statement ask about versions. It is replaced, never changed: statements that
// were cloned from one another share it.
type versionIntent struct {
	ignore    bool
	expects   bool
	expected  any
	touch     bool
	preserve  bool
	unchanged *unchangedColumns

	tokens      []fence.Token
	ignoreFence bool
}

const versionIntentClause = "gormlock:versions"

func versionIntentOf(stmt *gorm.Statement) *versionIntent {
	if len(stmt.Clauses) == 0 {
		return nil
	}
	c, ok := stmt.Clauses[versionIntentClause]
	if !ok {
		return nil
	}
	intent, _ := c.Expression.(*versionIntent)
	return intent
}

func (*versionIntent) Build(clause.Builder) {}

func (i *versionIntent) ignores() bool { return i != nil && i.ignore }

func (i *versionIntent) touches() bool { return i != nil && i.touch }

func (i *versionIntent) preserves() bool { return i != nil && i.preserve }

func (i *versionIntent) columns() *unchangedColumns {
	if i == nil {
		return nil
	}
	return i.unchanged
}

// on finds in the model what the clauses speak of.
func (i *versionIntent) on(m *versionedModel) (*versionIntent, error) {
	if i == nil {
		return nil, nil
	}
	if m.column == nil && (i.ignore || i.expects || i.touch || i.preserve) {
		return nil, fmt.Errorf("gormlock: %s has no version field to expect, ignore, touch or preserve: %w", m.schema.Name, because(ErrVersionMissing))
	}
	if m.fence == nil && i.asksFence() {
		return nil, fmt.Errorf("%w: %s has no fence field to guard or ignore", ErrFenceMissing, m.schema.Name)
	}
	if i.ignoreFence && len(i.tokens) > 0 {
		return nil, fmt.Errorf("gormlock: %s: a statement cannot both ignore the fence and name a token", m.schema.Name)
	}
	if i.ignore && i.expects {
		return nil, fmt.Errorf("gormlock: %s: a statement cannot both ignore the version and expect one", m.schema.Name)
	}
	if i.preserve && m.column != nil && m.column.kind == systemVersion {
		return nil, fmt.Errorf("gormlock: %s: xmin moves with every update and cannot be preserved", m.schema.Name)
	}
	if i.unchanged == nil {
		return i, nil
	}
	found := *i
	var err error
	found.unchanged, err = i.unchanged.of(m)
	return &found, err
}

// VersionClause changes what one statement does about versions: see [IgnoreVersion], [ExpectVersion] and [IfUnchanged].
// It goes into db.Clauses and gorm.G, and its method ModifyStatement into the Scopes of the generics API. It belongs on the
// statement itself: in a hook, a group of conditions or a join it is an error.
type VersionClause struct {
	change func(*versionIntent)
	err    error
}

// Name is empty: the clause itself writes nothing.
func (VersionClause) Name() string { return "" }

// Build writes nothing.
func (VersionClause) Build(clause.Builder) {}

// MergeClause merges nothing: ModifyStatement does it.
func (VersionClause) MergeClause(*clause.Clause) {}

// ModifyStatement adds what the clause asks to the statement.
func (c VersionClause) ModifyStatement(stmt *gorm.Statement) {
	switch {
	case c.err != nil:
		fail(stmt.DB, c.err)
		return
	case c.change == nil:
		fail(stmt.DB, fmt.Errorf("%w: a clause about versions or fences that no function of gormlock made", ErrOption))
		return
	}
	if pluginOf(stmt.DB) == nil {
		fail(stmt.DB, ErrNotInstalled)
		return
	}
	var intent versionIntent
	if old := versionIntentOf(stmt); old != nil {
		intent = *old
		unmark(stmt, func(m mark) bool { return m == mark(askedHere{old}) }) // there is one for all clauses together
	}
	c.change(&intent)
	stmt.Clauses[versionIntentClause] = clause.Clause{Expression: &intent}
	markConditions(stmt, askedHere{&intent})
}

// IgnoreVersion lets one statement write without a check. The version still moves, so that other holders of the row see
// that it changed; a loaded struct counts its own version on, and is stale afterwards if others wrote in between.
func IgnoreVersion() VersionClause {
	return VersionClause{change: func(i *versionIntent) { i.ignore = true }}
}

// ExpectVersion lets one statement write only rows at this version, whatever the struct holds: for a version that came
// in a form, and for the generics API, whose updates know no struct. Where it matches no row the statement fails with
// [ErrStale]. The version is an integer, or a time.Time for a temporal version column.
//
// It belongs on the write: a read, that of FirstOrCreate too, and a sub-query compare nothing, and fail with it.
func ExpectVersion(version any) VersionClause {
	return VersionClause{change: func(i *versionIntent) { i.expects, i.expected = true, version }}
}

// PreserveVersion lets one update, [Touch] or upsert leave the version of its rows as it is, for what other holders of the
// row need not know of: the time of a visit, or an upsert that is to do exactly what Rails does. The version is checked as
// ever. Holders of the row overwrite such a change unseen if they write all columns.
//
// An upsert of structs that were read from their rows cannot tell an update from an insert then, and is refused. The
// structs of any other have no version afterwards, unless all columns were updated: read them again.
func PreserveVersion() VersionClause {
	return VersionClause{change: func(i *versionIntent) { i.preserve = true }}
}

// refuseWithoutVersions fails a statement that asks about versions of a database that has none.
func refuseWithoutVersions(db *gorm.DB, intent *versionIntent) {
	if intent.asksVersion() && pluginOf(db).withoutVersions {
		fail(db, fmt.Errorf("%w: the plugin was made WithoutVersions, so that a statement cannot ask about one", ErrOption))
	}
}

// refuseWithoutModel fails a statement that asks about a version or a fence of a table whose model it does not know.
func refuseWithoutModel(db *gorm.DB) {
	if versionIntentOf(db.Statement) != nil {
		fail(db, fmt.Errorf("gormlock: %s: a table without its model has no version and no fence: name the model by Model", db.Statement.Table))
	}
}
