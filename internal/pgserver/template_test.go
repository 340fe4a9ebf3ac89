package pgserver_test

import (
	"os"
	"path/filepath"
	"testing"
)

// A new server is a copy of a cluster that was kept, and shares nothing with the next one.
func TestTemplate(t *testing.T) {
	t.Parallel()
	first := start(t)
	kept, err := first.Template()
	if err != nil {
		t.Fatal(err)
	}
	control, err := os.ReadFile(filepath.Join(kept, "global", "pg_control"))
	if err != nil {
		t.Fatalf("initdb's files were not kept: %v", err)
	}
	if _, err := first.CreateDatabase(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	second := start(t)
	if _, err := second.CreateDatabase(t.Context(), "one"); err != nil {
		t.Errorf("the second server is not new: %v", err)
	}
	if again, err := os.ReadFile(filepath.Join(kept, "global", "pg_control")); err != nil || string(again) != string(control) {
		t.Errorf("a server wrote to %s: %v", kept, err)
	}
	if _, err := os.Stat(filepath.Join(kept, "postmaster.pid")); err == nil {
		t.Errorf("%s was kept of a server that ran", kept)
	}
}
