package claim

import (
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/observe"
)

// tellClaim reports how many rows were claimed, even if reading them failed afterwards.
func tellClaim(p *install.Settings, query *gorm.DB, began time.Time) {
	if !p.Observed() || query.Error != nil && query.RowsAffected <= 0 {
		return
	}
	p.Tell(query.Statement.Context, observe.Event{Kind: observe.Claimed, Table: statement.TableName(query.Statement), Rows: query.RowsAffected, Wait: time.Since(began)})
}
