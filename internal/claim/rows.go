package claim

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sort"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

// scan reads the rows into the slice that dest points to, in their order. Then it does what follows a query in GORM: Preload
// and AfterFind.
func (c *claim) scan(query *gorm.DB, opened *sql.Rows, dest any) error {
	query.Statement.Dest, query.Statement.ReflectValue = dest, reflect.ValueOf(dest).Elem()
	query.Statement.ReflectValue.Grow(min(c.limit, 100))
	err := c.read(query, opened)
	if err == nil && !dialect.Of(query).UpdateReturns() {
		err = c.take(query)
	}
	_ = query.AddError(err)
	switch {
	case errors.Is(err, errKeyTwice):
		journal.Doom(query, err)
	case c.outcome == takenBack:
		return query.Error
	}
	if len(query.Statement.Preloads) > 0 {
		callbacks.Preload(query)
	}
	if query.Statement.Schema.AfterFind {
		before, _ := journal.Count(query.Statement, true)
		callbacks.AfterQuery(query)
		if _, refused := before.End(query); refused && query.Error != nil && query.RowsAffected > 0 {
			journal.Doom(query, query.Error) // the caller does not get what it claimed
		}
	}
	return query.Error
}

// outcome is what became of the statement of a claim, as far as its rows show.
type outcome int

const (
	done      outcome = iota
	takenBack         // the server has failed the statement, or its commit: nothing is claimed
	unknown           // the end of its rows did not come, so it may have been committed
)

// end closes the rows, and finds out what became of the statement. Its commit comes after its rows, and may fail.
func (c *claim) end(query *gorm.DB, opened *sql.Rows) error {
	closed := opened.Close()
	failed := cmp.Or(opened.Err(), closed)
	switch {
	case failed == nil:
		return nil
	case sqlstate.TakesBack(failed):
		c.outcome = takenBack
		query.Statement.ReflectValue.SetLen(0)
		query.RowsAffected = 0
	default:
		c.outcome = unknown
	}
	return failed
}

// read reads the rows and closes them: in a transaction no other statement can run before that.
func (c *claim) read(query *gorm.DB, opened *sql.Rows) (err error) {
	defer func() {
		if failed := c.end(query, opened); failed != nil {
			err = failed
		}
	}()
	columns, err := opened.Columns()
	if err != nil {
		return err
	}
	rows := &claimedRows{slice: query.Statement.ReflectValue, places: make([]place, 0, query.Statement.ReflectValue.Cap())}
	scan := newRowScan(query.Statement, c.model, columns[:len(columns)-1], &rows.place)
	query.RowsAffected = 0
	for opened.Next() {
		if err := scan.into(rows.next(), opened); err != nil {
			rows.drop()
			return err
		}
		rows.places = append(rows.places, rows.place)
		if rows.place == unknownPlace {
			claimedModelOf(query, c.model).movesKeys.Store(true)
		}
		query.RowsAffected++
	}
	if opened.Err() != nil {
		return nil // see end
	}
	apart := rows.ascend()
	if !apart {
		rows.swap = reflect.Swapper(rows.slice.Interface())
		sort.Stable(rows)
		apart = rows.ascend()
	}
	if !apart || len(rows.places) > c.limit {
		return c.refused(query.Statement, fmt.Errorf("%w: %d rows were changed, for a limit of %d", errKeyTwice, len(rows.places), c.limit))
	}
	return nil
}

var errKeyTwice = errors.New("nothing was claimed: the model's primary key is not unique in the table, so the statement changed other rows too")

// claimedRows are the rows of a claim and the place of each, by which they are sorted.
type claimedRows struct {
	slice  reflect.Value
	place  place // of the row that was read last
	places []place
	swap   func(i, j int)
}

// place is the place of a row among the claimed rows. It is a sql.Scanner because database/sql would convert a number through its text.
type place int64

// unknownPlace is the place of a row if the server changed its key in the claim: by a trigger, or because the key is
// generated from a column that the claim sets.
const unknownPlace place = math.MaxInt64

// Scan implements [sql.Scanner].
func (p *place) Scan(value any) error {
	switch n := value.(type) {
	case int64:
		*p = place(n)
	case nil:
		*p = unknownPlace
	default:
		return fmt.Errorf("gormlock: claim: the place of a row is %v", value)
	}
	return nil
}

// next adds an empty row.
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

// ascend reports whether the rows are in the order of their places, and no two have the same place.
func (r *claimedRows) ascend() bool {
	for i := 1; i < len(r.places); i++ {
		if r.places[i] <= r.places[i-1] && r.places[i] != unknownPlace {
			return false
		}
	}
	return true
}

// drop removes the last row.
func (r *claimedRows) drop() { r.slice.SetLen(r.slice.Len() - 1) }

func (r *claimedRows) Len() int           { return len(r.places) }
func (r *claimedRows) Less(i, j int) bool { return r.places[i] < r.places[j] }
func (r *claimedRows) Swap(i, j int) {
	r.places[i], r.places[j] = r.places[j], r.places[i]
	r.swap(i, j)
}
