package pgtest

import (
	"context"
	"database/sql/driver"

	"github.com/jackc/pgx/v5/stdlib"
)

// wrapper is a driver that says nothing of the one that it wraps: its connections have no method Raw.
type wrapper struct{ driver.Connector }

func (w wrapper) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := w.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &wrapped{conn.(*stdlib.Conn)}, nil //nolint:forcetypeassert // pgx's connector makes no others
}

// wrapped has all methods of pgx's connection but Conn, in whose place is a field.
type wrapped struct{ *stdlib.Conn }
