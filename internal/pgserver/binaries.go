package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// oldest is the first major version that is supported.
const oldest = 14

const cure = "install postgresql, set GORMLOCK_PG_BIN to the directory that holds initdb and postgres, or set GORMLOCK_TEST_DSN to a running server"

// places are where packages put the server's binaries.
var places = []string{
	"/usr/lib/postgresql/*/bin",                          // Debian, Ubuntu
	"/usr/pgsql-*/bin",                                   // RHEL, packages of the PostgreSQL project
	"/usr/libexec/postgresql*",                           // Alpine
	"/usr/lib/postgresql*/bin",                           // openSUSE
	"/opt/homebrew/opt/postgresql*/bin",                  // Homebrew on ARM
	"/usr/local/opt/postgresql*/bin",                     // Homebrew on Intel
	"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",     // Homebrew on Linux
	"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
	"/opt/local/lib/postgresql*/bin",                     // MacPorts
	"/usr/local/pgsql/bin",                               // from source
	"/usr/bin",                                           // RHEL, Arch
}

// installation is a directory of binaries that the account can run.
type installation struct {
	bin     string
	version string // "15.13"
	major   int
}

func (i installation) program(name string) string { return filepath.Join(i.bin, name) }

// findInstallation is the directory given by the caller or by GORMLOCK_PG_BIN, else
// that of the postgres in PATH, else the newest in the known places, else one that
// is downloaded.
func findInstallation(ctx context.Context, a account, c *config) (installation, error) {
	if c.binDir != "" {
		return inspect(ctx, a, c.binDir)
	}
	if dir := os.Getenv("GORMLOCK_PG_BIN"); dir != "" {
		i, err := inspect(ctx, a, dir)
		if err != nil {
			return i, fmt.Errorf("%w (GORMLOCK_PG_BIN)", err)
		}
		return i, nil
	}
	var refused []error
	if postgres, err := exec.LookPath("postgres"); err == nil {
		i, err := inspect(ctx, a, filepath.Dir(postgres))
		if err == nil {
			return i, nil
		}
		refused = append(refused, err)
	}
	i, err := newest(ctx, a, c.places)
	if err == nil {
		return i, nil
	}
	if err := ctx.Err(); err != nil {
		return installation{}, fmt.Errorf("pgserver: looking for PostgreSQL: %w", err)
	}
	refused = append(refused, err)
	i, err = download(ctx, a, c.repository)
	if err == nil {
		return i, nil
	}
	return installation{}, errors.Join(append(refused, err)...)
}

func newest(ctx context.Context, a account, patterns []string) (installation, error) {
	var found []installation
	var refused []error
	for _, pattern := range patterns {
		dirs, err := filepath.Glob(pattern)
		if err != nil {
			return installation{}, err
		}
		for _, dir := range dirs {
			if _, err := os.Stat(filepath.Join(dir, "postgres")); err != nil {
				continue
			}
			i, err := inspect(ctx, a, dir)
			if err != nil {
				refused = append(refused, err)
				continue
			}
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		return installation{}, errors.Join(append(refused, fmt.Errorf("pgserver: no PostgreSQL %d or newer found: %s", oldest, cure))...)
	}
	sort.SliceStable(found, func(x, y int) bool { return newer(found[x].version, found[y].version) })
	return found[0], nil
}

var versionOutput = regexp.MustCompile(`\(PostgreSQL\) ((\d+)\S*)`)

// inspect asks the binaries in dir for their version, as the account that will run them.
func inspect(ctx context.Context, a account, dir string) (installation, error) {
	// Links are followed: a link often leads to postgres alone, and its companions
	// lie next to the file it leads to.
	postgres, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
	if err != nil {
		return installation{}, fmt.Errorf("pgserver: %s holds no PostgreSQL server: %w", dir, err)
	}
	if postgres, err = filepath.Abs(postgres); err != nil {
		return installation{}, err
	}
	i := installation{bin: filepath.Dir(postgres)}
	if _, err := os.Stat(i.program("initdb")); err != nil {
		return i, fmt.Errorf("pgserver: %s holds no initdb: %w", i.bin, err)
	}
	out, err := a.command(ctx, "/", postgres, "--version").CombinedOutput()
	if err != nil {
		return i, fmt.Errorf("pgserver: %s does not run as %s: %w: %s", postgres, a.name, err, strings.TrimSpace(string(out)))
	}
	match := versionOutput.FindSubmatch(out)
	if match == nil {
		return i, fmt.Errorf("pgserver: %s --version says %q", postgres, out)
	}
	i.version = string(match[1])
	i.major, _ = strconv.Atoi(string(match[2]))
	if i.major < oldest {
		return i, fmt.Errorf("pgserver: %s is version %s, the oldest supported is %d", postgres, i.version, oldest)
	}
	return i, nil
}

// newer compares "16.10" and "16.9", "18beta1" counts as 18.0.
func newer(a, b string) bool {
	ax, ay := versionNumbers(a)
	bx, by := versionNumbers(b)
	if ax != bx {
		return ax > bx
	}
	return ay > by
}

var versionParts = regexp.MustCompile(`^(\d+)(?:\.(\d+))?`)

func versionNumbers(v string) (major, minor int) {
	match := versionParts.FindStringSubmatch(v)
	if match == nil {
		return 0, 0
	}
	major, _ = strconv.Atoi(match[1])
	minor, _ = strconv.Atoi(match[2])
	return major, minor
}
