package tests

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shown are the examples that a reader of pkg.go.dev finds, by packages: one for each verb that programs call.
var shown = map[string][]string{
	"": {
		"", "AcquireXactLock", "Attempts", "AutoMigrate", "Check", "Claim", "ExpectVersion", "Fence", "FenceFor", "FenceTx", "ForRequest",
		"IfUnchanged", "IgnoreFence", "IgnoreVersion", "IsRetryable", "Key", "LockRow", "LockRows", "MigrateAll", "OnRetry", "Once",
		"PreserveVersion", "RetryIf", "RowLock", "SaveMerged", "StaleError", "SweepOnce", "Touch", "Transaction", "Try", "VerifyVersion", "VersionTrigger", "WithRowLock",
		"WithSkipLocked", "WithXactLock", "XactLock", "_root",
	},
	"advisory":            {"Acquire", "SessionLocker"},
	"etag":                {"", "IfMatch", "NotModified", "Of", "WriteError"},
	"fence":               {"Issue", "Latest", "NewContext", "Token_Guard", "Token_Value"},
	"gormlocktest":        {"", "AssertInstalled", "ExpectBegin", "Hold", "PretendLocks"},
	"inspect":             {"Handler", "Snapshot", "Tree"},
	"lease":               {"Daily", "Elector", "Lease_Bind", "Lease_Renew", "Manager_Acquire", "Manager_Do", "Manager_Every", "Manager_Holder", "Manager_Lead", "Slots", "Try"},
	"lockkey":             {"Of", "Pair", "Renamed", "SQL"},
	"lockkey/compat":      {"", "Reserved", "WithAdvisoryLock"},
	"observe":             {"Multi", "NewQueue", "Observer", "Slog"},
	"observe/otelobserve": {"New"},
	"pgxlock":             {"Acquire", "Transaction"},
	"sessionlock":         {"Lock_Bind", "Manager_Acquire", "Manager_AcquireAll", "Manager_Do", "Shared", "Try"},
	"work": {
		"Complete", "Dead", "Enqueue", "Later", "OnePer", "Requeue", "Stats", "Worker_Drain", "Worker_Run",
	},
}

// printsErrors matches what passes for an example and is none: errors that are printed beside other values, or by a call.
var printsErrors = regexp.MustCompile(`fmt\.Println\(([^\n]*, )?err, |fmt\.Println\([^\n]*, err\)`)

// TestExamples: each verb has an example that is run, that fits on a screen, and that looks at its errors.
func TestExamples(t *testing.T) {
	t.Parallel()
	const screen = 31 // with fewer than 30 lines between the braces
	for pkg, names := range shown {
		found := examples(t, filepath.Join("..", pkg))
		for _, name := range names {
			e, ok := found[name]
			if !ok {
				t.Errorf("%s: no Example%s", pkg, name)
				continue
			}
			if e.output == "" || strings.Contains(e.output, "<nil>") {
				t.Errorf("%s: Example%s is not run, or prints an error that is nil", pkg, name)
			}
			if lines := strings.Count(e.body, "\n") + 1; lines > screen {
				t.Errorf("%s: Example%s has %d lines", pkg, name, lines-2)
			}
			if trick := printsErrors.FindString(e.body); trick != "" {
				t.Errorf("%s: Example%s prints an error in place of looking at it: %s", pkg, name, trick)
			}
		}
	}
}

type example struct{ body, output string }

// examples returns the examples of a package by what they are of.
func examples(t *testing.T, dir string) map[string]example {
	t.Helper()
	found := map[string]example{}
	paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		fset := token.NewFileSet()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(fset, path, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range doc.Examples(file) {
			block, ok := e.Code.(*ast.BlockStmt)
			if !ok {
				continue
			}
			body := string(text[fset.Position(block.Lbrace).Offset:fset.Position(block.Rbrace).Offset])
			body, _, _ = strings.Cut(body, "// Output:")
			found[e.Name] = example{body, e.Output}
		}
	}
	return found
}
