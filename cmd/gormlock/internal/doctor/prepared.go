package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/server"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

const noPreparing = `add default_query_exec_mode=exec to the program's connection string: …/database?default_query_exec_mode=exec, or in a list default_query_exec_mode=exec
and leave gorm.Config{PrepareStmt: true} off, which prepares in any mode
or let the pooler keep prepared statements: PgBouncer 1.21 and newer, max_prepared_statements = 200`

// checkPrepared tries whether prepared statements survive a pooler that changes the server connection. pgx prepares each query unless the
// connection string says otherwise. The next use may reach a server connection that does not know the statement, or that knows another one by its
// name.
func (x *examination) checkPrepared(ctx context.Context) error {
	if !x.handedOn {
		return nil
	}
	program := x.config.Copy()
	if !x.ExecModeGiven() {
		program.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement // the default of pgx
	}
	if mode := program.DefaultQueryExecMode; mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol {
		x.well("prepared", "the connection string says default_query_exec_mode=%s, which prepares nothing", mode)
		return nil
	}
	err := x.prepareInTurn(ctx, program)
	switch {
	case err == nil:
		x.well("prepared", "prepared statements survive the pooler")
	case sqlstate.Is(err, sqlstate.DuplicatePreparedStatement, sqlstate.InvalidSQLStatementName):
		for i := range x.findings {
			x.findings[i].Cure = strings.Replace(x.findings[i].Cure, worksHere, "work here once what is found of prepared is cured", 1)
		}
		x.add(finding{
			Check: "prepared", Status: wrong, Cure: noPreparing,
			Says: "the connection string lacks default_query_exec_mode=exec: pgx prepares statements, the pooler hands them to server connections that do not fit, and they fail at random: " + server.Problem(err),
		})
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		x.add(finding{Check: "prepared", Status: note, Says: "prepared statements could not be tried through the pooler: " + server.Problem(err), Cure: noPreparing})
	}
	return nil
}

// prepareInTurn runs the same statement on two connections in turn, as two goroutines of a program do.
func (x *examination) prepareInTurn(ctx context.Context, config *pgx.ConnConfig) error {
	one, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = one.Close(context.WithoutCancel(ctx)) }() // nothing was written
	other, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = other.Close(context.WithoutCancel(ctx)) }() // nothing was written
	// Nobody else prepares this text.
	text := fmt.Sprintf("SELECT %d AS gormlock_doctor", time.Now().UnixNano())
	for range 10 {
		for _, conn := range []*pgx.Conn{one, other} {
			var number int64
			if err := conn.QueryRow(ctx, text).Scan(&number); err != nil {
				return err
			}
		}
	}
	return nil
}
