package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/cli"
)

// If a connection string is in the wrong place, it is not repeated, whatever it looks like, and the error says where it belongs.
func TestPassword_ofAMisplacedConnectionStringIsNotPrinted(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://127.0.0.1:1/db")
	places := map[string][]string{"no command": {"DSN"}, "a flag as the command": {"-DSN"}}
	for name, args := range map[string]string{
		"ls": "", "watch": "", "why": "1", "jobs": "mails", "key": "invoice", "doctor": "host=h", "cancel": "1", "terminate": "1", "completion": "bash", "version": "", "help": "ls",
	} {
		good := append([]string{name}, strings.Fields(args)...)
		places[name+" DSN"] = []string{name, "DSN"}
		places[name+" ARGUMENTS DSN"] = append(good, "DSN")
		places[name+" with two"] = []string{name, "DSN", "DSN"}
		places[name+" -- DSN"] = append(good, "--", "DSN")
		places[name+" --DSN"] = append(good, "--DSN")
	}
	for name, flags := range map[string]string{
		"ls": "limit pid json waiting key app user kind", "watch": "interval count limit key", "why": "json", "jobs": "limit json",
		"key": "scheme schemes offline json", "doctor": "observe sample json fix column ignore", "cancel": "wait yes", "terminate": "wait yes",
	} {
		for flag := range strings.FieldsSeq(flags) {
			places[name+" --"+flag+"=DSN"] = []string{name, "--" + flag + "=DSN"}
			places[name+" --"+flag+" DSN"] = []string{name, "--" + flag, "DSN"}
		}
	}
	for _, right := range []string{"doctor DSN", "doctor --json DSN", "doctor --fix DSN"} {
		delete(places, right)
	}
	places["jobs TABLE requeue DSN"] = []string{"jobs", "mails", "requeue", "DSN"}
	places["key --schemes DSN"] = []string{"key", "--schemes", "DSN"}
	places["key --scheme que DSN"] = []string{"key", "--scheme", "que", "DSN"}
	places["a flag without its value"] = []string{"ls", "--key", "--dsn", "DSN"}
	places["the same, with ="] = []string{"ls", "--key", "--dsn=DSN"}
	dsns := []string{
		"postgres://app:s3cret@127.0.0.1:1/db", "POSTGRES://app:S3CRET/x@127.0.0.1:1/db?sslmode=disable", "postgres://127.0.0.1:1/db?user=app&password=s3cret",
		"host=127.0.0.1 port=1 password = 's3cret \"word\\n'", "password=s3cret", "redis://:s3cret@h/1", "postgres://app:s3cret\x1b\n@h/1", "postgresql://127.0.0.1:1/s3cret", "app:s3cret@tcp(h)/d",
		"jdbc:sqlserver://h;user=app;pwd=s3cret",
	}
	for place, args := range places {
		for i, dsn := range dsns {
			given := make([]string, len(args))
			for n, arg := range args {
				given[n] = strings.Replace(arg, "DSN", dsn, 1)
			}
			code, out := runHere(t, given...)
			if code != exitError || strings.Contains(strings.ToLower(out), "s3cret") || i == 0 && !strings.Contains(out, "--dsn") {
				t.Errorf("%s with %s: %d, %s", place, dsn, code, out)
			}
		}
	}
	// Anything that is not a connection string is a name like any other.
	for want, args := range map[string][]string{
		"https://example.com/a":                      {"key", "--offline", "https://example.com/a"},
		"cannot connect":                             {"ls", "--key=--dsn"},
		"--key has no value: behind it stands --dsn": {"ls", "--key", "--dsn", "host=h"},
	} {
		if _, out := runHere(t, args...); !strings.Contains(out, want) {
			t.Errorf("%q: %s", args, out)
		}
	}
}

// runHere runs the program in this process. It returns the exit code and everything that was printed.
func runHere(t *testing.T, args ...string) (code int, printed string) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p := &cli.Program{In: os.Stdin, Stdout: out, Stderr: out, Out: bufio.NewWriter(out), Args: args}
	code = run(t.Context(), p, args)
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return code, string(text)
}
