package bench

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/gormlock/gormlock/lockkey"
)

// The statements of cirello.io/pglock v1.16.1: nextval and take for an acquire, release for a release.
const (
	pglockNext = `SELECT nextval('locks_rvn')`
	pglockTake = `
		INSERT INTO locks
			("name", "record_version_number", "data", "owner")
		VALUES
			($1, $2, $3, $6)
		ON CONFLICT ("name") DO UPDATE
		SET
			"record_version_number" = CASE
				WHEN COALESCE(locks."record_version_number" = $4, TRUE) THEN $2
				ELSE locks."record_version_number"
			END,
			"data" = CASE
				WHEN COALESCE(locks."record_version_number" = $4, TRUE) THEN
					CASE
						WHEN $5 THEN $3
						ELSE locks."data"
					END
				ELSE locks."data"
			END,
			"owner" = CASE
				WHEN COALESCE(locks."record_version_number" = $4, TRUE) THEN $6
				ELSE locks."owner"
			END
		RETURNING
			"record_version_number", "data", "owner"
	`
	pglockRelease = `DELETE FROM locks WHERE "name" = $1 AND "record_version_number" = $2`
)

// pglocked sends the statements of cirello.io/pglock v1.16.1 without its heartbeat, which renews each lock separately, the first time at once.
func pglocked(b *testing.B, db *sql.DB) once {
	b.Helper()
	for _, text := range []string{
		`CREATE TABLE IF NOT EXISTS locks (
			name CHARACTER VARYING(255) PRIMARY KEY, record_version_number BIGINT, data BYTEA, owner CHARACTER VARYING(255))`,
		"CREATE SEQUENCE IF NOT EXISTS locks_rvn CYCLE OWNED BY locks.record_version_number",
	} {
		if _, err := db.ExecContext(b.Context(), text); err != nil {
			b.Fatal(err)
		}
	}
	return func(ctx context.Context, key lockkey.Key) error {
		var next, version int64
		if err := db.QueryRowContext(ctx, pglockNext).Scan(&next); err != nil {
			return err
		}
		var data []byte
		var owner string
		err := db.QueryRowContext(ctx, pglockTake, key.String(), next, data, int64(0), false, "bench").Scan(&version, &data, &owner)
		if err != nil || version != next {
			return fmt.Errorf("version %d, not %d, %w", version, next, err)
		}
		return oneRow(ctx, db, pglockRelease, key.String(), version)
	}
}
