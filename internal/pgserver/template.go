package pgserver

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

var initdbFlags = []string{"-U", superuser, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"}

// initialize makes the files of a new cluster. initdb takes several times as long as a copy of its files, so those it
// made first are kept, for each installation, and copied from then on.
func (s *Server) initialize(ctx context.Context) error {
	template, err := s.template()
	if err != nil {
		return s.initdb(ctx)
	}
	if _, err := os.Stat(filepath.Join(template, "global", "pg_control")); err == nil {
		if err := s.account.copyTree(ctx, template, s.data(), nil); err != nil {
			return fmt.Errorf("pgserver: copy %s: %w", template, cause(ctx, err))
		}
		return nil
	}
	if err := s.initdb(ctx); err != nil {
		return err
	}
	keep(ctx, s.data(), template)
	return nil
}

func (s *Server) initdb(ctx context.Context) error {
	out, err := s.account.command(ctx, s.dir, s.install.program("initdb"), append([]string{"-D", s.data()}, initdbFlags...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("pgserver: initdb: %w\n%s", cause(ctx, err), tail(out))
	}
	return nil
}

// template is where the files are kept that initdb of this installation makes.
func (s *Server) template() (string, error) {
	cache, err := cacheDir(s.account)
	if err != nil {
		return "", err
	}
	program, err := os.Stat(s.install.program("initdb"))
	if err != nil {
		return "", err
	}
	made := sha256.Sum256(fmt.Append(nil, s.install, program.ModTime().UnixNano(), strings.Join(initdbFlags, " ")))
	return filepath.Join(cache, fmt.Sprintf("cluster-%s-%x", s.install.version, made[:8])), nil
}

// keep copies a new cluster, which appears complete or not at all. Where it cannot be kept, initdb runs again.
func keep(ctx context.Context, data, template string) {
	scratch, err := os.MkdirTemp(filepath.Dir(template), "copy-")
	if err != nil {
		return
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	copied := filepath.Join(scratch, "cluster")
	if err := (account{}).copyTree(ctx, data, copied, nil); err != nil {
		return
	}
	syscall.Sync() // a crash of the machine must not leave the name without the content
	_ = os.Rename(copied, template)
}
