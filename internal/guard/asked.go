package guard

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// refuseWithoutVersions fails a statement that asks about versions if the plugin runs without versions.
func refuseWithoutVersions(db *gorm.DB, intent *asked.Intent) {
	if intent.AsksVersion() && install.Of(db).WithoutVersions {
		fault.Add(db, fmt.Errorf("%w: the plugin was made WithoutVersions, so a statement cannot ask for a version: take that option out", fault.ErrOption))
	}
}

// refuseWithoutModel fails a statement that asks about a version or a fence if its model is not known.
func refuseWithoutModel(db *gorm.DB) {
	if asked.Of(db.Statement) != nil {
		fault.Add(db, fmt.Errorf("gormlock: %s: a table without its model has no version and no fence: name the model by Model", db.Statement.Table))
	}
}

// RefuseRead fails a read that has a clause of a comparison, and a read of another model than its chain's.
func RefuseRead(db *gorm.DB) {
	RefuseOnText(db)
	refuseInRead(db)
	refuseOtherRead(db)
	if err := unreadCondition(db.Statement, model.Of(db)); err != nil {
		fault.Add(db, err)
	}
}

func refuseInRead(db *gorm.DB) {
	if !asked.Of(db.Statement).Compares() || db.Error != nil {
		return
	}
	err := fmt.Errorf("gormlock: %s: ExpectVersion, IfUnchanged and IfMatch compare nothing in a read: put them on the write, or call VerifyVersion", statement.TableName(db.Statement))
	if db.DryRun && statement.InSubQuery() {
		statement.FailSubQuery(db.Statement, err)
		return
	}
	fault.Add(db, err)
}

// RefuseOnText fails a statement of raw SQL that names a token or a condition on the row, because nothing can be added to its text.
func RefuseOnText(db *gorm.DB) {
	stmt := db.Statement
	if stmt.SQL.Len() == 0 {
		return
	}
	intent := asked.Of(stmt)
	if intent == nil || statement.IsSavepoint(stmt) {
		return
	}
	switch {
	case len(intent.Tokens) > 0:
		fault.Add(db, fmt.Errorf("gormlock: Fence does not guard raw SQL: write the token's Guard into it, or call FenceTx first"))
	case intent.Compares():
		fault.Add(db, fmt.Errorf("gormlock: ExpectVersion and IfUnchanged compare nothing in raw SQL: write the condition into it"))
	}
}
