package gormlock

import (
	"database/sql"
	"reflect"
	"slices"
	"sort"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
)

// scan reads the rows into the slice that dest points to, in their order; then what a query does after it: Preload,
// AfterFind.
func (c *claim) scan(query *gorm.DB, opened *sql.Rows, dest any) error {
	query.Statement.Dest, query.Statement.ReflectValue = dest, reflect.ValueOf(dest).Elem()
	query.Statement.ReflectValue.Grow(min(c.limit, 100))
	_ = query.AddError(c.read(query, opened))
	if len(query.Statement.Preloads) > 0 {
		callbacks.Preload(query)
	}
	if query.Statement.Schema.AfterFind {
		callbacks.AfterQuery(query)
	}
	return query.Error
}

// read reads the rows and closes them: in a transaction nothing else runs before.
func (c *claim) read(query *gorm.DB, opened *sql.Rows) (err error) {
	defer func() {
		if closed := opened.Close(); err == nil {
			err = closed
		}
	}()
	scan, err := c.rowScan(query.Statement, opened)
	if err != nil {
		return err
	}
	rows := &claimedRows{slice: query.Statement.ReflectValue, each: scan.ranks()}
	rows.ranks = make([]rank, 0, rows.slice.Cap()*rows.each)
	query.RowsAffected = 0
	for opened.Next() {
		if err := scan.into(rows.next(), opened); err != nil {
			rows.drop()
			return err
		}
		rows.ranks = scan.appendRanks(rows.ranks)
		query.RowsAffected++
	}
	if err := opened.Err(); err != nil {
		return err
	}
	rows.sort()
	return nil
}

// claimedRows are the rows of a claim, and what they are sorted by: so many ranks for each.
type claimedRows struct {
	slice reflect.Value
	ranks []rank
	each  int
	swap  func(i, j int)
}

// next is one row more, with nothing in it yet.
func (r *claimedRows) next() reflect.Value {
	n := r.slice.Len()
	r.slice.Grow(1)
	r.slice.SetLen(n + 1)
	row := r.slice.Index(n)
	if row.Kind() != reflect.Pointer {
		return row
	}
	row.Set(reflect.New(row.Type().Elem()))
	return row.Elem()
}

// drop takes the last row away.
func (r *claimedRows) drop() { r.slice.SetLen(r.slice.Len() - 1) }

func (r *claimedRows) sort() {
	if !sort.IsSorted(r) {
		r.swap = reflect.Swapper(r.slice.Interface())
		sort.Stable(r)
	}
}

// ranksOf are the ranks of a row.
func (r *claimedRows) ranksOf(row int) []rank { return r.ranks[row*r.each : (row+1)*r.each] }

func (r *claimedRows) Len() int { return r.slice.Len() }

func (r *claimedRows) Less(i, j int) bool {
	return slices.CompareFunc(r.ranksOf(i), r.ranksOf(j), rank.compare) < 0
}

func (r *claimedRows) Swap(i, j int) {
	a, b := r.ranksOf(i), r.ranksOf(j)
	for k := range a {
		a[k], b[k] = b[k], a[k]
	}
	r.swap(i, j)
}
