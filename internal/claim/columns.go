package claim

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/guard"
)

// This file is about the columns that gormlock keeps.

// fence returns the fence with the token for the claim's write, nil if the model has no fence.
func (c *claim) fence(stmt *gorm.Statement) (*guard.FenceGuard, error) {
	intent := asked.Of(stmt)
	if _, err := intent.On(c.model); err != nil {
		return nil, err
	}
	guard, err := guard.FenceOf(c.model, stmt, intent)
	if err != nil || guard == nil {
		return nil, err
	}
	for name := range c.assign {
		if stmt.Schema.LookUpField(name) != guard.Field {
			continue
		}
		if guard.Assigned = guard.Ignored; !guard.Ignored {
			return nil, c.refused(stmt, fmt.Errorf("%q is the fence, which the claim's token sets: leave it out", name))
		}
	}
	return guard, nil
}
