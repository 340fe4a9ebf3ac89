package gormlock

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// Claim changes up to limit rows that nobody else has locked, and returns them as they are now, in the order the scopes
// ask for. Two calls of it never get the same row, and none waits for another.
//
//	jobs, err := gormlock.Claim[Job](db, 10, map[string]any{"state": "running", "attempts": gorm.Expr("attempts + 1")},
//		func(q *gorm.DB) *gorm.DB { return q.Where("state = ?", "ready").Order("priority DESC, id") })
//
// It is one statement: the rows are found and locked with SKIP LOCKED, changed and read. In a transaction it is part of
// that, and what it claimed is free again after a rollback; outside of one it needs none. When nothing is free the
// slice is empty. Fewer rows than limit may come back although more are free, when a scope's join repeats rows or a
// rival changed one at that moment: call again until nothing comes.
//
// The keys of assign are fields or columns of T, its values are values or gorm.Expr. What the scopes look for should be
// changed by it, or the next call claims the same rows again. UpdatedAt is set and the version column grows; rows that
// are deleted softly are left. Conditions, joins and order stand in the scopes or on db; so does Preload, which reads
// afterwards, as it does for associations that Joins names. What has no place in a claim is an error: Select, Omit,
// Limit, Distinct, Group, MapColumns, raw SQL, an alias of the table, another row lock, a Model that has a key, Joins of an
// association with conditions.
//
// Rows are told apart by T's primary key, which has to be unique in the table. Where it is not, as it may be in a partitioned
// or inherited table, a claim could change rows that it has neither locked nor looked at. One that finds it has is an error,
// the rows come back beside it, and a transaction can only be rolled back.
//
// A fence column gets the token that the context carries or [Fence] names: see there. Without one nothing is claimed
// ([ErrFenceMissing]); once a later token was issued, or a row was written with one, no row is ([ErrFenced]), and the
// transaction can only be rolled back.
//
// AfterFind runs for each row, as for a query. If it fails, or a Preload does, the rows are claimed all the same: they
// come back beside the error. If a column does not fit its field, those before it come back: a transaction, rolled back,
// gives all of them free. The hooks of an update do not run: BeforeUpdate, AfterUpdate, BeforeSave and AfterSave belong to
// rows that are known beforehand. Where the server itself changes the key of a row that is written, by a trigger or because
// it is generated, the order of a first claim of few rows is not kept.
//
// Of GORM's callbacks those of Row run, once, as for Rows: a plugin that adds conditions, of a tenant for example, has to
// register there too, not for Query and Update alone.
//
// It locks FOR NO KEY UPDATE, as an UPDATE does: a row whose child is just being inserted is not skipped. At REPEATABLE
// READ and above a row that was changed since the snapshot is an error that [IsRetryable] knows; at any level, so is a row
// that a rival moves to another partition at that moment, as claims do that assign the column by which the table is
// partitioned.
func Claim[T any](db *gorm.DB, limit int, assign map[string]any, scopes ...func(*gorm.DB) *gorm.DB) ([]T, error) {
	rows := []T{}
	err := claimInto(db, &rows, &claim{limit: limit, assign: assign, scopes: scopes})
	if err != nil && len(rows) == 0 {
		return nil, err
	}
	return rows, err
}

// claim is one call of Claim.
type claim struct {
	limit  int
	assign map[string]any
	scopes []func(*gorm.DB) *gorm.DB

	running  bool // GORM has it now
	scoped   bool // and runs scopes first
	prepared bool
	stmt     *gorm.Statement // that claims, once it is prepared: no other may
	model    *versionedModel
	text     *claimSQL
	set      clause.Set
	guard    *fenceWrite
	write    *versionWrite // what it writes, once the statement is built
}

// claimInto claims rows into the slice that rows points to.
func claimInto(db *gorm.DB, rows any, c *claim) error {
	if err := usable(db); err != nil {
		return err
	}
	if !isPostgres(db) {
		return fmt.Errorf("%w, not %s: claim rows", ErrNotPostgres, db.Name())
	}
	if c.limit <= 0 {
		return fmt.Errorf("gormlock: claim: limit is %d, one is the least", c.limit)
	}
	if slice := reflect.TypeOf(rows).Elem(); !isSliceOfStructs(slice) {
		return fmt.Errorf("gormlock: claim: %w: %s is no slice of models, nor of pointers to them", schema.ErrUnsupportedDataType, slice)
	}
	query, err := c.query(beside(db), rows)
	if err != nil {
		return err
	}
	began := pluginOf(db).began()
	c.running, c.scoped = true, hasScopes(query.Statement)
	query = query.Callback().Row().Execute(query)
	opened, _ := query.Statement.Dest.(*sql.Rows)
	if row, ok := query.Statement.Dest.(*sql.Row); ok && row != nil { // of another query: Scan gives its connection back
		_ = row.Scan()
	}
	switch {
	case c.write == nil && opened != nil:
		return errors.Join(errOtherQuery, opened.Close())
	case !c.prepared:
		return cmp.Or(query.Error, errOtherQuery)
	case query.Error != nil && c.write == nil, query.DryRun:
		return query.Error
	case query.Error != nil:
		err = query.Error
	case opened == nil:
		return errors.New("gormlock: claim: no rows were opened: another plugin has replaced the callback gorm:row")
	default:
		err = c.scan(query, opened, rows)
	}
	pluginOf(db).tellClaim(query, began)
	c.write.lostRows = err != nil
	rememberClaim(query, c.write, reflect.ValueOf(rows).Elem())
	if refused := c.write.refusedByFence(query.Statement, err); refused != nil {
		return refused
	}
	if err != nil {
		return c.text.lock.verdict(query.Statement, err)
	}
	return nil
}
