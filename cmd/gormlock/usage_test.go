package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var commands = []string{"ls", "watch", "why", "jobs", "key", "doctor", "cancel", "terminate", "completion", "version", "help"}

func TestHelp_saysAllAboutEachCommand(t *testing.T) {
	t.Parallel()
	overview := offline(t, "--help")
	overview.is(t, 0, "DATABASE_URL", "PGHOST", "NO_COLOR", "Exit codes")
	for _, name := range commands {
		overview.is(t, 0, "\n  "+name+" ")
		r := offline(t, name, "--help")
		r.is(t, 0, "Usage\n  gormlock "+name, "Exit codes\n  0  ", "\n  2  an error")
		if r.stderr != "" {
			t.Errorf("%s --help writes to standard error: %s", name, r.stderr)
		}
		for _, other := range [][]string{{"help", name}, {name, "-h"}, {name, "x", "--help", "y"}} {
			if again := offline(t, other...); again != r {
				t.Errorf("%q differs from %s --help", other, name)
			}
		}
		for _, line := range strings.Split(r.out, "\n") {
			if len(line) > 110 {
				t.Errorf("%s --help has a line of %d characters: %s", name, len(line), line)
			}
		}
	}
}

func TestUsage_whatIsWrongIsSaidInOneLine(t *testing.T) {
	t.Parallel()
	for want, args := range map[string]string{
		`no command "lss", did you mean ls?`:                          "lss",
		`no command "xyzzy": gormlock help lists them`:                "xyzzy",
		`no command "wacth", did you mean watch?`:                     "help wacth",
		"no flag --wating, did you mean --waiting?":                   "ls --wating",
		"no flag --frobnicate: gormlock ls --help":                    "ls --frobnicate=s3cret",
		"the command comes first, before --dsn":                       "--dsn=postgres://u:s3cret@h/d ls",
		"takes PART…, not 0 arguments: gormlock key --help says more": "key --json",
		"PID is missing: gormlock why --help says more":               "why",
		`unexpected argument "2" after PID`:                           "cancel 1 2",
		`unexpected argument "x", it takes flags only`:                "ls x",
		`no scheme "ralis", did you mean rails?`:                      "key --scheme ralis x",
		"the scheme pair takes HI LO, not 1 argument: gormlock":       "key --scheme pair 1",
		`"x" is not an integer of 64 bits`:                            "key --scheme que x",
		`"99999999999" is not an integer of 32 bits`:                  "key --scheme pair 99999999999 1",
		"the database name is empty":                                  "key --scheme rails-migrator --",
		`no script for the shell "tcsh"`:                              "completion tcsh",
		"the server is named twice":                                   "doctor --dsn host=a host=b",
		"--interval must be at least 10ms":                            "watch --interval 0s",
		`"0" is not a PID`:                                            "terminate 0",
		"--limit -1 is negative":                                      "ls --limit -1",
		`invalid value "x" for flag -limit`:                           "ls --limit x",
		"--wait 0s leaves no time":                                    "cancel 1 --wait 0s",
		"unexpected argument x after --schemes":                       "key --schemes x",
		"--json holds the SQL that --fix prints: give one of them":    "doctor --json --fix",
		"--fix prints the SQL that --apply runs: give one of them":    "doctor --fix --apply",
		"--json says what --quiet leaves out: give one of them":       "doctor --quiet --json",
		"--sample must be at least 2":                                 "doctor --sample 1",
		"this is no connection string":                                "ls --dsn nonsense",
		"not the URL of a PostgreSQL server":                          "ls --dsn redis://u:s3cret@h/d",
		"this leads to MySQL or MariaDB":                              "ls --dsn mysql://u:s3cret@h/d",
		"leads to MySQL or MariaDB":                                   "doctor --dsn u:s3cret@tcp(h)/d?parseTime=true",
		"leads to SQLite":                                             "doctor --dsn file:s3cret.db?cache=shared",
		"give it the connection string of a PostgreSQL server":        "ls --dsn sqlserver://u:s3cret@h?database=d",
		"host=… user=… dbname=…":                                      "ls --dsn u/s3cret@h:1521/d?x=y",
	} {
		fields := strings.Fields(args)
		if fields[len(fields)-1] == "--" {
			fields = append(fields, "")
		}
		r := offline(t, fields...)
		r.is(t, 2, want)
		if strings.Contains(r.out+r.stderr, "s3cret") {
			t.Errorf("%s: %s", args, r.stderr)
		}
	}
	r := program{}.run(t)
	if r.code != 2 || !strings.Contains(r.stderr, "Commands") || !strings.HasSuffix(r.stderr, "gormlock: no command is given\n") {
		t.Errorf("without arguments: %d\n%s", r.code, r.stderr)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	offline(t, "version").is(t, 0, "gormlock ", "go1.")
	offline(t, "--version").is(t, 0, "gormlock ", "go1.")
}

// A full disk is an error, and not a short answer.
func TestOutput_thatCannotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("this system has no /dev/full: %v", err)
	}
	defer full.Close()
	cmd := program{args: []string{"key", "invoice", "42"}}.command(t)
	var stderr strings.Builder
	cmd.Stdout, cmd.Stderr = full, &stderr
	_ = cmd.Run()
	if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(stderr.String(), "standard output") {
		t.Errorf("%d: %s", cmd.ProcessState.ExitCode(), stderr.String())
	}
}

// Each shell completes commands, flags and schemes. If zsh or fish is not installed, it is skipped, unless GORMLOCK_SHELLS is "required".
func TestCompletion_completes(t *testing.T) {
	t.Parallel()
	path := filepath.Dir(binary(t)) + ":" + os.Getenv("PATH")
	for shell, script := range map[string]string{
		"bash": `source <(gormlock completion bash) || exit
			try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gormlock; echo "${COMPREPLY[@]}"; }
			try gormlock te; try gormlock ls --wai; try gormlock key --scheme ra; try gormlock completion f; try gormlock nothing x`,
		"fish": `gormlock completion fish | source
			echo (complete -C "gormlock te" | cut -f1); echo (complete -C "gormlock ls --wai" | cut -f1)
			echo (complete -C "gormlock key --scheme ra" | cut -f1); echo (complete -C "gormlock completion f" | cut -f1); echo`,
		"zsh": `autoload -U compinit; compinit -D -u; eval "$(gormlock completion zsh)" || exit
			compadd() { print -r -- "${@[-1]}"; }
			_describe() { local -a all; all=("${(@P)${@[-1]}}"); print -r -- ${(M)${all%%:*}:#$prefix*}; }
			try() { words=("$@"); CURRENT=$#; prefix=${@[-1]}; _gormlock; }
			try gormlock te; try gormlock ls --wai`,
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(shell); err != nil {
				if os.Getenv("GORMLOCK_SHELLS") == "required" {
					t.Fatalf("%v: scripts/require-shells installs it", err)
				}
				t.Skipf("%s is not here", shell)
			}
			flags := map[string][]string{"bash": {"--norc", "-c", script}, "fish": {"--no-config", "-c", script}, "zsh": {"-f", "-c", script}}[shell]
			cmd := exec.CommandContext(t.Context(), shell, flags...)
			cmd.Env = append(os.Environ(), "PATH="+path, "HOME="+t.TempDir())
			out, err := cmd.CombinedOutput()
			want := map[string]string{
				"bash": "terminate\n--waiting\nrails rails-number rails-migrator\nfish\n\n",
				"fish": "terminate\n--waiting\nrails rails-migrator rails-number\nfish\n\n",
				"zsh":  "terminate\n--waiting\n",
			}[shell]
			if err != nil || string(out) != want {
				t.Errorf("%v: got\n%s\nwant\n%s", err, out, want)
			}
		})
	}
}

func TestKey_golden(t *testing.T) {
	t.Parallel()
	const invoice = `key       invoice/42
id        1840925882773462882
pg_locks  classid = 428623958 AND objid = 881385314 AND objsubid = 1
compute   SELECT ('x' || encode(substr(sha256(convert_to('7:invoice2:42', 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint;
take      SELECT pg_advisory_xact_lock(1840925882773462882); -- until the end of the transaction
          SELECT pg_advisory_lock(1840925882773462882); -- until pg_advisory_unlock or the end of the session
held by   (no server is named: --dsn, DATABASE_URL or PGHOST)
`
	const pair = `key       pair(7,-42)
scheme    pair
id        7, -42
pg_locks  classid = 7 AND objid = 4294967254 AND objsubid = 2
compute   SELECT 7, -42;
take      SELECT pg_advisory_xact_lock(7, -42); -- until the end of the transaction
          SELECT pg_advisory_lock(7, -42); -- until pg_advisory_unlock or the end of the session
held by   (no server is named: --dsn, DATABASE_URL or PGHOST)
`
	const prisma = `key       int64(72707369)
scheme    int64
id        72707369
pg_locks  classid = 0 AND objid = 72707369 AND objsubid = 1
compute   SELECT 72707369;
take      SELECT pg_advisory_xact_lock(72707369); -- until the end of the transaction
          SELECT pg_advisory_lock(72707369); -- until pg_advisory_unlock or the end of the session
reserved  Prisma migrate locks this very id
held by   (no server was asked)
`
	for want, r := range map[string]result{
		invoice: offline(t, "key", "invoice", "42"),
		pair:    offline(t, "key", "--scheme", "pair", "7", "-42"),
		prisma:  on(t, "postgres://127.0.0.1:1/x", "key", "--scheme", "int64", "--offline", "72707369"),
	} {
		if r.code != 0 || r.out != want {
			t.Errorf("%d: got\n%s%s\nwant\n%s", r.code, r.out, r.stderr, want)
		}
	}
	r := offline(t, "key", "--scheme", "rails", "orders:42", "myapp_staging_")
	r.is(t, 0, "key       with-advisory-lock/orders:42\nscheme    rails\nid        218055877, 0\n", "SELECT pg_advisory_lock(218055877, 0);")
	offline(t, "key", "--scheme", "spring", "1-1-1-1-1").is(t, 0, "LOCK_KEY  00000001-0001-0001-0001-000000000001")
	offline(t, "key", "--scheme", "distributed-lock", "short").is(t, 0, "(SQL has no short way)")
	if r := offline(t, "key", "a\x1b[31m\nb"); r.code != 0 || strings.Contains(r.out, "\x1b") || !strings.Contains(r.out, "--json has it") {
		t.Errorf("a name moves the cursor: %q", r.out)
	}
	offline(t, "key", "--schemes").is(t, 0, "rails, with-advisory-lock", "hashtextextended")
}

func TestKey_saysWhoHoldsIt(t *testing.T) {
	t.Parallel()
	s := stage(t)
	on(t, s.dsn, "key", "invoice", "42").is(t, 0, "held by   in database gormlock_", "invoice/42  exclusive", "worker", "billing")
	on(t, s.dsn, "key", "invoice", "43").is(t, 0, "held by   nobody in database gormlock_")
	on(t, s.dsn, "key", "invoice", "42", "--json").is(t, 0, `"arguments": "1840925882773462882"`, `"granted": true`, `"granted": false`, `"database": "gormlock_`)
	held := join(t, s.dsn, "rails")
	held.exec("SELECT pg_advisory_lock(218055877, 0)")
	on(t, s.dsn, "key", "--scheme", "rails", "orders:42").is(t, 0, "with-advisory-lock/orders:42  exclusive", held.arg())
	// What needs no server is printed before the error about the server.
	r := on(t, "postgres://127.0.0.1:1/x", "key", "invoice", "42")
	r.is(t, 2, "cannot connect to 127.0.0.1:1", "(from DATABASE_URL)", "connection refused")
	if !strings.Contains(r.out, "1840925882773462882") {
		t.Errorf("the key is not shown: %s", r.out)
	}
}
