package lookalikes_test

import (
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/gormlock/gormlock/internal/lookalike"
)

// engine is how a server answers that only looks like PostgreSQL, as far as we know: none of them runs here, and the
// texts were not copied from one.
type engine struct {
	version    string
	parameters map[string]string // of the session, as it reports them
	savepoints bool              // it has them
	aborts     bool              // an error aborts the transaction
	// locks is the error for a statement with an advisory lock, as SQLSTATE and message. An empty one evaluates the
	// statement as PostgreSQL does.
	locks [2]string
	// cast is the message of a text that is no integer.
	cast string
}

// fake is a server that answers as an engine does.
type fake struct {
	engine
	listener net.Listener
	mu       sync.Mutex
	granted  int // locks
}

func serve(t *testing.T, e engine) (*fake, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{engine: e, listener: listener}
	var sessions sync.WaitGroup
	sessions.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			sessions.Go(func() {
				defer func() { _ = conn.Close() }()
				f.session(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		sessions.Wait()
	})
	return f, "postgres://app@" + listener.Addr().String() + "/app?sslmode=disable"
}

// session answers one client until it is gone.
func (f *fake) session(conn net.Conn) {
	backend := pgproto3.NewBackend(conn, conn)
	if _, err := backend.ReceiveStartupMessage(); err != nil {
		return
	}
	backend.Send(&pgproto3.AuthenticationOk{})
	for name, value := range f.parameters {
		backend.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	backend.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
	backend.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
	backend.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
	status := byte('I')
	for {
		backend.Send(&pgproto3.ReadyForQuery{TxStatus: status})
		if backend.Flush() != nil {
			return
		}
		message, err := backend.Receive()
		query, ok := message.(*pgproto3.Query)
		if err != nil || !ok {
			return // Terminate, or what the simple protocol does not have
		}
		status = f.answer(backend, query.String, status)
	}
}

// answer runs the statements of a text, and returns the status of the transaction after it.
func (f *fake) answer(backend *pgproto3.Backend, text string, status byte) byte {
	if strings.Contains(text, "SAVEPOINT") && !f.savepoints && status != 'E' { // it is parsed as a whole
		backend.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "42601", Message: `syntax error at or near "SAVEPOINT"`})
		return f.after(status)
	}
	for statement := range strings.SplitSeq(text, ";") {
		statement = strings.TrimSpace(statement)
		word, _, _ := strings.Cut(strings.ToUpper(statement), " ")
		switch {
		case word == "ROLLBACK" && !strings.Contains(statement, " TO "):
			status = 'I'
		case word == "ROLLBACK" && f.savepoints && status == 'E':
			status = 'T'
		case status == 'E':
			backend.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "25P02", Message: "current transaction is aborted"})
			return status
		case word == "BEGIN":
			status = 'T'
		case word == "COMMIT":
			status = 'I'
		case word == "SELECT" || word == "WITH":
			if err := f.selects(backend, statement); err != nil {
				return f.after(status)
			}
		}
		backend.Send(&pgproto3.CommandComplete{CommandTag: []byte(tagOf(word))})
	}
	return status
}

func tagOf(word string) string {
	if word == "SELECT" || word == "WITH" {
		return "SELECT 1"
	}
	return word
}

// after is the status after an error.
func (f *fake) after(status byte) byte {
	if status == 'T' && f.aborts {
		return 'E'
	}
	return status
}

var errSent = errors.New("an error was sent")

func (f *fake) selects(backend *pgproto3.Backend, statement string) error {
	raise := func(code, message string) error {
		backend.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: code, Message: message})
		return errSent
	}
	row := func(value string) error {
		backend.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("x"), DataTypeOID: 25, DataTypeSize: -1, TypeModifier: -1}}})
		backend.Send(&pgproto3.DataRow{Values: [][]byte{[]byte(value)}})
		return nil
	}
	switch {
	case strings.Contains(statement, "advisory") && f.locks[0] != "":
		return raise(f.locks[0], f.locks[1])
	case strings.Contains(statement, "advisory") && strings.HasPrefix(statement, "SELECT CASE WHEN pg_is_in_recovery() THEN 'standby' "):
		return row(lookalike.Says + f.version)
	case strings.Contains(statement, "advisory") && strings.Contains(statement, "AND NOT"): // its name is allowed
		f.mu.Lock()
		defer f.mu.Unlock()
		f.granted++
		return row("")
	case strings.Contains(statement, "THEN "+lookalike.Raise), statement == "SELECT "+lookalike.Raise:
		return raise("22P02", strings.Replace(f.cast, "%", lookalike.Says+f.version, 1))
	case statement == "SELECT version()":
		return row(f.version)
	case strings.Contains(statement, "pg_backend_pid"):
		return raise("42883", "function pg_is_in_recovery() does not exist")
	}
	return row("1")
}

// engines are servers that cannot be run here, as we believe them to be.
var engines = map[string]engine{
	"CockroachDB": {
		version:    "CockroachDB CCL v25.2.0 (x86_64-pc-linux-gnu, built 2025/05/09 18:30:00, go1.23.7)",
		parameters: map[string]string{"server_version": "13.0.0", "crdb_version": "CockroachDB CCL v25.2.0"},
		savepoints: true, aborts: true,
		locks: [2]string{"42846", "invalid cast: void -> string"},
		cast:  `could not parse "%" as type int: strconv.ParseInt: parsing "gormlock": invalid syntax`,
	},
	"YugabyteDB": {
		version:    "PostgreSQL 15.2-YB-2.25.1.0-b0 on x86_64-pc-linux-gnu, compiled by clang version 17.0.6, 64-bit",
		parameters: map[string]string{"server_version": "15.2-YB-2.25.1.0-b0"},
		savepoints: true, aborts: true,
		cast: `invalid input syntax for type integer: "%"`,
	},
	"Redshift": {
		version:    "PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC gcc (GCC) 3.4.2 20041017 (Red Hat 3.4.2-6.fc3), Redshift 1.0.12103",
		parameters: map[string]string{"server_version": "8.0.2"},
		aborts:     true,
		locks:      [2]string{"42883", "function pg_is_in_recovery() does not exist"},
		cast:       `invalid input syntax for integer: "%"`,
	},
	"Materialize": {
		version:    "PostgreSQL 9.5 on x86_64-unknown-linux-gnu (Materialize 0.130.0)",
		parameters: map[string]string{"server_version": "9.5.0"},
		aborts:     true,
		locks:      [2]string{"42883", `function "pg_is_in_recovery" does not exist`},
		cast:       `invalid input syntax for type integer: invalid digit found in string: "%"`,
	},
	"QuestDB": {
		version:    "PostgreSQL 12.3, compiled by Visual C++ build 1914, 64-bit, QuestDB",
		parameters: map[string]string{"server_version": "12.3"},
		locks:      [2]string{"42601", "unknown function name: pg_is_in_recovery()"},
		cast:       "inconvertible value: `%` [STRING -> INT]",
	},
	"CrateDB": {
		version:    "CrateDB 5.10.4 (built 4cdd5c5/2025-04-08T09:02:43Z, Linux 6.8.0 amd64, OpenJDK 64-Bit Server VM 24+36)",
		parameters: map[string]string{"server_version": "14.0"},
		locks:      [2]string{"42883", "Unknown function: pg_is_in_recovery()"},
		cast:       "Cannot cast `'%'` of type `text` to type `integer`",
	},
	"openGauss": { // one that is not listed
		version:    "openGauss 6.0.0 on x86_64-unknown-linux-gnu, compiled by g++ (GCC) 10.3.0, 64-bit",
		parameters: map[string]string{"server_version": "9.2.4"},
		savepoints: true, aborts: true,
		cast: `invalid input syntax for integer: "%"`,
	},
	"PostgreSQL": { // Aurora DSQL says no more of itself than the version whose language it speaks
		version:    "PostgreSQL 16",
		parameters: map[string]string{"server_version": "16"},
		aborts:     true,
		locks:      [2]string{"0A000", "unsupported function pg_advisory_xact_lock"},
		cast:       `invalid input syntax for type integer: "%"`,
	},
}

// P33: the first lock on such a server is an error that names it.
func TestErrServer(t *testing.T) {
	t.Parallel()
	for name, e := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, dsn := serve(t, e)
			refused(t, dsn, name, e.savepoints)
			if f.granted != 0 {
				t.Errorf("%d locks were granted", f.granted)
			}
		})
	}
}

// AllowServer takes the locks of one server by its name, and of no other.
func TestAllowServer(t *testing.T) {
	t.Parallel()
	for name, e := range engines {
		if e.locks[0] != "" {
			continue // it knows no lock to take
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, dsn := serve(t, e)
			p := at(t, dsn, "Another", strings.ToUpper(name))
			for i, d := range doors[:8] {
				if err := d.take(t.Context(), p); err != nil || f.granted <= i {
					t.Errorf("%s: %v, %d granted", d.name, err, f.granted)
				}
			}
		})
	}
}
