package roots_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// The condition that keeps an upsert of parts to the rows whose roots have moved holds beside whatever the caller's conditions are.
func TestRoot_conditionsStayInBrackets(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, append([]any{&pair{}}, models...), func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Create(&[]order{{}, {}, {}}).Error)
		for _, where := range []string{"1=1) OR (1=1", "1=1)\tOR\t(1=1"} {
			upsert := clause.OnConflict{
				Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"qty"}),
				Where: clause.Where{Exprs: []clause.Expression{gorm.Expr(where)}},
			}
			if err := db.Clauses(upsert).Create(&line{ID: 99, OrderID: 1, Qty: 5}).Error; err == nil || !strings.Contains(err.Error(), "close a parenthesis") {
				t.Error(where, err)
			}
		}
		stand.Equal(t, "no root moves", versionsOf(t, db), [3]int64{1, 1, 1})
		one, other := stand.Made(t, db, pair{ToOrderID: 1}), stand.Made(t, db, pair{ToOrderID: 2})
		stand.Must(t, db.Model(&one).Where("1=1\tOR 1=1").Update("text", "x").Error)
		stand.Equal(t, "the root of the row", versionsOf(t, db), [3]int64{3, 2, 1})
		stand.Equal(t, "the other row", stand.Row[pair](t, db, other.ID).Text, "")
	})
}
