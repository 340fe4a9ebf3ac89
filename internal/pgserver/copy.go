package pgserver

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// emptied are the directories of a cluster whose content belongs to the running
// server and not into a copy.
var emptied = []string{"pg_wal", "pg_replslot", "pg_dynshmem", "pg_notify", "pg_serial", "pg_snapshots", "pg_stat_tmp", "pg_subtrans"}

// copyCluster copies the files of a running cluster, of which some change, shrink
// and vanish meanwhile: the server's log repairs that when the copy starts.
func (a account) copyCluster(ctx context.Context, from, to string) error {
	return a.copyTree(ctx, from, to, emptied)
}

// copyTree copies a directory, but the content of some of its directories.
func (a account) copyTree(ctx context.Context, from, to string, emptied []string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case entry.IsDir():
			err = errors.Join(os.Mkdir(target, 0o700), a.own(target))
			if err == nil && slices.Contains(emptied, name) {
				return filepath.SkipDir
			}
			return err
		case !entry.Type().IsRegular(), leftOut(name):
			return nil
		}
		return a.copyFile(path, target)
	})
}

func leftOut(name string) bool {
	base := filepath.Base(name)
	return strings.HasPrefix(base, "pgsql_tmp") || slices.Contains([]string{"postmaster.pid", "postmaster.opts", "pg_internal.init", "backup_label"}, base)
}

func (a account) copyFile(from, to string) error {
	source, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close(), a.own(to))
}

// own gives a file to the account.
func (a account) own(file string) error {
	if a.credential == nil {
		return nil
	}
	return os.Lchown(file, int(a.credential.Uid), int(a.credential.Gid))
}
