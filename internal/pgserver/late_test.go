package pgserver

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A program may die while initdb is about to make the directory of the data.
func TestWatchdog_removesWhatIsMadeLate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "server")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	late := exec.Command("/bin/sh", "-c", `sleep 0.5; mkdir -p "$0"; sleep 0.2`, filepath.Join(dir, "data"))
	if err := late.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = late.Wait() }()
	w, err := watch(dir)
	if err != nil {
		t.Fatal(err)
	}
	w.release()
	if err := late.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
}
