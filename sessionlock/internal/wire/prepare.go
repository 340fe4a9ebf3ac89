package wire

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/internal/tokens"
)

// Role is what a session is for.
type Role uint8

// The roles.
const (
	Home   Role = iota // tries and unlocks, any number of locks
	Waiter             // waits for one contended key, and holds it once granted
	Issuer             // issues fencing tokens
)

// Prepare makes the statements of a role known to the session, in one round trip.
func Prepare(ctx context.Context, conn *pgconn.PgConn, r Role) error {
	p := conn.StartPipeline(ctx)
	if r == Issuer {
		p.SendPrepare(Issue.name(), tokens.Batch, nil)
		p.SendPrepare(IssueUnlocked.name(), tokens.BatchUnlocked, nil)
	} else {
		for s := range Listed {
			if s.name() != "" {
				p.SendPrepare(s.name(), s.sql(), nil)
			}
		}
	}
	if r == Waiter {
		p.SendPrepare(limitName, limitSQL, nil)
		for variant, names := range waitNames {
			p.SendPrepare(names[0], waitSQL(variant), nil)
			p.SendPrepare(names[1], "SELECT "+call("pg_advisory_lock", Statement(variant), "$1::bigint"), nil)
		}
	}
	err := p.Sync()
	for err == nil {
		var result any
		if result, err = p.GetResults(); result == nil {
			break
		}
		if _, synced := result.(*pgconn.PipelineSync); synced {
			break
		}
	}
	if err = errors.Join(err, p.Close()); err != nil {
		return fmt.Errorf("gormlock: prepare the session: %w", err)
	}
	return nil
}
