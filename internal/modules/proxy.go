package modules

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Released are the modules that users import or install. A release is a tag in each.
var Released = []string{".", "gormlocktest", "gormlockvet", "observe/otelobserve"}

// Tags are the tags of a release.
func Tags(version string) []string {
	tags := make([]string, 0, len(Released))
	for _, dir := range Released {
		tags = append(tags, path.Join(dir, version))
	}
	return tags
}

// Proxy writes the released modules, as the files that git knows are now, as a version of theirs into a directory that GOPROXY can
// name: GOPROXY=file://DIR. So a release can be installed before it is one.
func Proxy(ctx context.Context, root, to, version string) error {
	if !release.MatchString(version) {
		return errNoVersion(version)
	}
	all, err := Find(ctx, root)
	if err != nil {
		return err
	}
	listing := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	listing.Dir = root
	listed, err := listing.Output()
	if err != nil {
		return err
	}
	files := strings.FieldsFunc(string(listed), func(r rune) bool { return r == 0 })
	for _, m := range all {
		if slices.Contains(Released, m.Dir) {
			if err := m.publish(root, to, version, m.filesOf(files)); err != nil {
				return err
			}
		}
	}
	return nil
}

// filesOf are those of the files, by their paths from the root, that lie in m and in no module below it.
func (m Module) filesOf(files []string) (mine []string) {
	var below []string
	for _, file := range files {
		if dir := path.Dir(file); path.Base(file) == "go.mod" && dir != m.Dir && within(m.Dir, file) {
			below = append(below, dir)
		}
	}
	for _, file := range files {
		if within(m.Dir, file) && !slices.ContainsFunc(below, func(dir string) bool { return within(dir, file) }) {
			mine = append(mine, file)
		}
	}
	return mine
}

func within(dir, file string) bool { return dir == "." || strings.HasPrefix(file, dir+"/") }

// publish writes what a proxy serves of one version.
func (m Module) publish(root, to, version string, files []string) error {
	dir := filepath.Join(to, filepath.FromSlash(m.Path), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.Dir), "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Now().UTC()})
	if err != nil {
		return err
	}
	var zipped bytes.Buffer
	w := zip.NewWriter(&zipped)
	for _, file := range files {
		if err := m.pack(w, root, version, file); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "list"), []byte(version+"\n"), 0o644),
		os.WriteFile(filepath.Join(dir, version+".info"), info, 0o644),
		os.WriteFile(filepath.Join(dir, version+".mod"), mod, 0o644),
		os.WriteFile(filepath.Join(dir, version+".zip"), zipped.Bytes(), 0o644),
	)
}

// pack adds a file to the zip of its module. One that git knows and that is gone is left out.
func (m Module) pack(w *zip.Writer, root, version, file string) error {
	from, err := os.Open(filepath.Join(root, filepath.FromSlash(file)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	name := file
	if m.Dir != "." {
		name = strings.TrimPrefix(file, m.Dir+"/")
	}
	entry, err := w.Create(m.Path + "@" + version + "/" + name)
	if err != nil {
		return err
	}
	_, err = io.Copy(entry, from)
	return err
}
