package pgserver

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Option changes how Start and Standby make a server. The set is closed.
type Option interface {
	apply(*config) error
}

// Setting sets a parameter of the server, as a line of postgresql.conf would; the
// last one of a name wins. What Start itself decides (port, listen_addresses,
// data_directory, unix_socket_directories) cannot be set.
// Default: nothing is synced to disk, 300 connections. With fsync on, the data lies on a disk.
func Setting(name, value string) Option {
	return setting{name, value}
}

// BinDir takes the binaries from dir, and looks nowhere else.
// Default: GORMLOCK_PG_BIN, else the newest installation found.
func BinDir(dir string) Option {
	return binDir(dir)
}

// defaults are the settings a server starts with. With fsync off a commit still
// reaches the operating system before it is answered, so a crash of the server loses
// no commit; synchronous_commit off would, and saves next to nothing without fsync.
var defaults = []setting{
	{"fsync", "off"},
	{"full_page_writes", "off"},
	{"max_connections", "300"},
	{"shared_buffers", "32MB"},
	{"max_prepared_transactions", "20"},
	{"wal_keep_size", "256MB"},
	{"timezone", "UTC"},
	{"log_timezone", "UTC"},
	{"log_line_prefix", "%m [%p] "},
}

type config struct {
	binDir     string
	places     []string // where to look for installations
	repository string   // where to download from, embedded-postgres knows one
	settings   []setting
}

func newConfig(opts []Option) (*config, error) {
	c := &config{places: places}
	for _, opt := range opts {
		if err := opt.apply(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// synced says that the server is to sync to its disk.
func (c *config) synced() bool {
	synced := false
	for _, s := range c.settings {
		if strings.EqualFold(s.name, "fsync") {
			synced = !slices.Contains([]string{"off", "no", "false", "0"}, strings.ToLower(s.value))
		}
	}
	return synced
}

type setting struct{ name, value string }

var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`)

func (s setting) apply(c *config) error {
	switch strings.ToLower(s.name) {
	case "port", "listen_addresses", "data_directory", "unix_socket_directories":
		return fmt.Errorf("pgserver: setting %s is decided by the server itself", s.name)
	}
	if !settingName.MatchString(s.name) {
		return fmt.Errorf("pgserver: %q is not the name of a setting", s.name)
	}
	c.settings = append(c.settings, s)
	return nil
}

// line is the setting as a line of postgresql.conf.
func (s setting) line() string {
	quoted := strings.NewReplacer(`\`, `\\`, `'`, `''`, "\n", `\n`, "\r", `\r`).Replace(s.value)
	return s.name + " = '" + quoted + "'\n"
}

type binDir string

func (d binDir) apply(c *config) error {
	c.binDir = string(d)
	return nil
}
