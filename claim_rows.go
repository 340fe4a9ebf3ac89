package gormlock

import (
	"database/sql"
	"reflect"
	"sort"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
)

// scanClaim runs the claim's statement and reads its rows into the slice that dest points to, in their order; then what
// a query does after it: Preload, AfterFind.
func scanClaim(query *gorm.DB, dest any) error {
	opened, err := query.Rows()
	if err != nil {
		return err
	}
	query.Statement.Dest, query.Statement.ReflectValue = dest, reflect.ValueOf(dest).Elem()
	readClaim(query, opened)
	callbacks.Preload(query)
	callbacks.AfterQuery(query)
	return query.Error
}

// readClaim reads the rows and closes them: in a transaction nothing else runs before.
func readClaim(query *gorm.DB, opened *sql.Rows) {
	defer func() { _ = query.AddError(opened.Close()) }()
	rows := &claimedRows{Rows: opened}
	gorm.Scan(rows, query, 0)
	rows.swap = reflect.Swapper(query.Statement.ReflectValue.Interface())
	if query.Error == nil && !sort.IsSorted(rows) {
		sort.Sort(rows)
	}
}

// claimedRows are the rows of a claim without their last column, the place of each, by which they are sorted.
type claimedRows struct {
	*sql.Rows
	place  int64
	dest   []any
	places []int64
	swap   func(i, j int)
}

// Columns and Scan implement gorm.Rows.
func (r *claimedRows) Columns() ([]string, error) {
	columns, err := r.Rows.Columns()
	if err != nil {
		return nil, err
	}
	return columns[:len(columns)-1], nil
}

func (r *claimedRows) Scan(dest ...any) error {
	r.dest = append(append(r.dest[:0], dest...), &r.place)
	err := r.Rows.Scan(r.dest...)
	r.places = append(r.places, r.place)
	return err
}

func (r *claimedRows) Len() int           { return len(r.places) }
func (r *claimedRows) Less(i, j int) bool { return r.places[i] < r.places[j] }
func (r *claimedRows) Swap(i, j int) {
	r.places[i], r.places[j] = r.places[j], r.places[i]
	r.swap(i, j)
}
