package main

import (
	"context"
	"time"

	"github.com/gormlock/gormlock/examples/internal/place"
)

// newPlace leaves the tables for the Rails side to make.
func newPlace(ctx context.Context, dsn string) (*place.Place, error) {
	p, err := place.New(ctx, dsn, "railsapp")
	if err != nil {
		return nil, err
	}
	p.DB.NowFunc = func() time.Time { return time.Now().UTC() } // Rails keeps UTC in columns without a zone
	return p, nil
}
