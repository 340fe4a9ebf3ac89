package guard

import (
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// Intent is what the clauses of one statement ask about versions. It is replaced and never changed, because a statement
// shares it with its clones.
type Intent struct {
	Ignore    bool
	Expects   bool
	Expected  any
	touch     bool
	tentative bool // of a touch: finding no row is an answer, not a conflict
	preserve  bool
	Unchanged *unchangedColumns
	merged    *mergedRow // nil: all columns are written

	tokens      []fence.Token
	ignoreFence bool
}

// VersionIntentClause is the name under which a statement carries what its clauses ask.
const VersionIntentClause = "gormlock:versions"

// IntentOf returns what the clauses of the statement ask, and nil where they ask nothing.
func IntentOf(stmt *gorm.Statement) *Intent {
	if len(stmt.Clauses) == 0 {
		return nil
	}
	c, ok := stmt.Clauses[VersionIntentClause]
	if !ok {
		return nil
	}
	intent, _ := c.Expression.(*Intent)
	if intent.Merges() && !statement.SamePointer(stmt.Dest, intent.merged.mine) { // a hook's, which has the clauses of the merge too
		other := *intent
		other.merged = nil
		return &other
	}
	return intent
}

// Build makes an Intent fit into a statement's clauses. It writes nothing.
func (*Intent) Build(clause.Builder) {}

func (i *Intent) ignores() bool { return i != nil && i.Ignore }

// Touches reports whether a statement only moves versions.
func Touches(stmt *gorm.Statement) bool { return IntentOf(stmt).touches() }

func (i *Intent) touches() bool { return i != nil && i.touch }

// IsTentative reports whether a touch may find no row.
func (i *Intent) IsTentative() bool { return i != nil && i.tentative }

func (i *Intent) preserves() bool { return i != nil && i.preserve }

// Merges reports whether the statement merges its struct with the row.
func (i *Intent) Merges() bool { return i != nil && i.merged != nil }

func (i *Intent) columns() *unchangedColumns {
	if i == nil {
		return nil
	}
	return i.Unchanged
}

// On finds in the model what the clauses speak of.
func (i *Intent) On(m *model.Model) (*Intent, error) {
	if i == nil {
		return nil, nil
	}
	if m.Column == nil && (i.Ignore || i.Expects || i.touch || i.preserve) {
		return nil, fmt.Errorf("gormlock: %s has no version field to expect, ignore, touch or preserve: %w", m.Schema.Name, fault.Because(fault.ErrVersionMissing))
	}
	if m.Fence == nil && i.asksFence() {
		return nil, fmt.Errorf("%w: %s has no fence field to guard or ignore", fault.ErrFenceMissing, m.Schema.Name)
	}
	if i.ignoreFence && len(i.tokens) > 0 {
		return nil, fmt.Errorf("gormlock: %s: a statement cannot both ignore the fence and name a token", m.Schema.Name)
	}
	if i.Ignore && i.Expects {
		return nil, fmt.Errorf("gormlock: %s: a statement cannot both ignore the version and expect one", m.Schema.Name)
	}
	if i.preserve && m.Column != nil && m.Column.IsSystem() {
		return nil, fmt.Errorf("gormlock: %s: xmin moves with every update and cannot be preserved", m.Schema.Name)
	}
	if i.Unchanged == nil {
		return i, nil
	}
	found := *i
	var err error
	found.Unchanged, err = i.Unchanged.of(m)
	return &found, err
}

// refuseWithoutVersions fails a statement that asks about versions of a database that has none.
func refuseWithoutVersions(db *gorm.DB, intent *Intent) {
	if intent.AsksVersion() && install.Of(db).WithoutVersions {
		fault.Add(db, fmt.Errorf("%w: the plugin was made WithoutVersions, so a statement cannot ask for a version: take that option out", fault.ErrOption))
	}
}

// refuseWithoutModel fails a statement that asks about a version or a fence of a table whose model it does not know.
func refuseWithoutModel(db *gorm.DB) {
	if IntentOf(db.Statement) != nil {
		fault.Add(db, fmt.Errorf("gormlock: %s: a table without its model has no version and no fence: name the model by Model", db.Statement.Table))
	}
}
