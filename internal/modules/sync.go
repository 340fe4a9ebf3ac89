package modules

import (
	"context"
	"fmt"
	"regexp"
)

// Sync brings all modules in step with that of root, and tidies them.
func Sync(ctx context.Context, root string) error {
	all, err := Find(ctx, root)
	if err != nil {
		return err
	}
	for _, m := range all {
		args := []string{"mod", "edit", "-go=" + all[0].Go}
		for _, r := range m.Replaces {
			args = append(args, "-dropreplace="+r.Path)
		}
		for _, r := range m.replaces(all) {
			args = append(args, "-replace="+r.Path+"="+r.Dir)
		}
		for _, r := range m.Requires {
			if want := m.wanted(all, r); want != r.Version {
				args = append(args, "-require="+r.Path+"@"+want)
			}
		}
		if _, err := run(ctx, root, m.Dir, args...); err != nil {
			return err
		}
	}
	for _, m := range all {
		if _, err := run(ctx, root, m.Dir, "mod", "tidy"); err != nil {
			return err
		}
	}
	return nil
}

var release = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// Release makes all modules require each other at a version that is about to be tagged, in each of them.
func Release(ctx context.Context, root, version string) error {
	if !release.MatchString(version) {
		return errNoVersion(version)
	}
	all, err := Find(ctx, root)
	if err != nil {
		return err
	}
	for _, m := range all {
		args := []string{"mod", "edit"}
		for _, r := range m.Requires {
			if _, ours := byPath(all, r.Path); ours {
				args = append(args, "-require="+r.Path+"@"+version)
			}
		}
		if len(args) == 2 {
			continue
		}
		if _, err := run(ctx, root, m.Dir, args...); err != nil {
			return err
		}
	}
	return nil
}

func errNoVersion(version string) error { return fmt.Errorf("%q is no version like v1.2.3", version) }
