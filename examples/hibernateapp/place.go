package main

import (
	"context"
	"errors"
	"time"

	"github.com/gormlock/gormlock/examples/internal/place"
)

// newPlace makes the tables that Hibernate makes of the entities in java.go.
func newPlace(ctx context.Context, dsn string) (*place.Place, error) {
	p, err := place.New(ctx, dsn, "hibernateapp")
	if err != nil {
		return nil, err
	}
	p.DB.NowFunc = func() time.Time { return time.Now().UTC() } // as Hibernate does with hibernate.jdbc.time_zone=UTC
	if err := p.DB.WithContext(ctx).Exec(tables).Error; err != nil {
		return nil, errors.Join(err, p.Leave())
	}
	return p, nil
}
