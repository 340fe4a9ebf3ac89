package guard

import (
	"fmt"
	"strings"

	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
)

// refuseOtherNames fails a statement that assigns to a column by a name that only the server understands, such as "VERSION" or "accounts.version":
// code that compares and keeps columns would not see it.
func (b builder) refuseOtherNames(set clause.Set) {
	if !dialect.Of(b.DB).KnowsOtherNames() {
		return
	}
	s := b.draft.model.Schema
	for i := range set {
		given := set[i].Column.Name
		if s.FieldsByDBName[given] != nil {
			continue
		}
		name := strings.Trim(given[strings.LastIndexByte(given, '.')+1:], "`\"")
		for _, column := range s.DBNames {
			if strings.EqualFold(name, column) {
				fault.Add(b.DB, fmt.Errorf("gormlock: %s: an assignment names the column %q, which only the server takes for %q: name it so",
					s.Name, given, column))
				return
			}
		}
	}
}
