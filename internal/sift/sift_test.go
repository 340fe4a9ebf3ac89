package sift_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/internal/sift"
)

var errRow = &pgconn.PgError{Code: "P0001", Message: "refused"}

// Rows that are refused after a wait keep the others waiting about once for each of them.
func TestParts_thatWait(t *testing.T) {
	t.Parallel()
	list := make([]int, 32)
	for i := range list {
		list[i] = i
	}
	isBad := func(i int) bool { return i%6 == 3 } // five
	for wait, most := range map[time.Duration]int{0: 5 * 6, 200 * time.Millisecond: 1 + 5} {
		refused, bad := 0, []int(nil)
		var good []int
		all := sift.Parts(t.Context(), list, func(part []int) error {
			if !slices.ContainsFunc(part, isBad) {
				return nil
			}
			refused++
			<-time.After(wait)
			return errRow
		}, func(part []int, err error) bool {
			if err == nil {
				good = append(good, part...)
			} else {
				bad = append(bad, part...)
			}
			return true
		})
		slices.Sort(good)
		slices.Sort(bad)
		if !all || !slices.Equal(bad, []int{3, 9, 15, 21, 27}) || len(slices.Compact(good)) != 27 || slices.ContainsFunc(good, isBad) {
			t.Errorf("%v %v %v", all, good, bad)
		}
		if refused > most {
			t.Errorf("refused %d times, after %s each", refused, wait)
		}
	}
}

// An error that is of no row is that of a part as a whole, and done may stop the rest.
func TestParts_stop(t *testing.T) {
	t.Parallel()
	other := errors.New("the connection is closed")
	var parts [][]int
	all := sift.Parts(t.Context(), []int{1, 2, 3, 4}, func(part []int) error {
		if len(part) == 4 {
			return errRow
		}
		return other
	}, func(part []int, err error) bool {
		parts = append(parts, part)
		return !errors.Is(err, other)
	})
	if all || len(parts) != 1 || len(parts[0]) != 2 {
		t.Errorf("%v %v", all, parts)
	}
	if !sift.Parts(t.Context(), nil, func([]int) error { return other }, func([]int, error) bool { return false }) {
		t.Error("nothing is to be done of nothing")
	}
}
