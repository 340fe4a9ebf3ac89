package gormlockvet_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/gormlockvet"
)

// frame holds what stands before and after an example in the documentation, to make a program of it.
type frame struct{ before, after string }

const inFunction = "func example(ctx context.Context, db, tx *gorm.DB, key lockkey.Key) error {\n"

var frames = map[string]frame{
	"dropped": {inFunction, "_ = account\nreturn err\n}"},
	"outer":   {inFunction + "var account Account\n", "return err\n}"},
	"ignored": {inFunction + "var account Account\n", "return nil\n}"},
	"tags":    {"", ""},
	"around":  {inFunction, "return err\n}"},
	"retried": {inFunction, "_ = ids\nreturn err\n}"},
	"old":     {inFunction + "var account Account\n", "return err\n}"},
	"uninstalled": {
		"func open(dsn string) error {\n", "return db.Save(&Account{}).Error\n}\nfunc main() { _ = open(\"dsn\") }",
	},
	"held": {inFunction + "var account Account\n", "return err\n}"},
}

var example = regexp.MustCompile("(?s)\n## (\\w+)\n.*?```diff\n(.*?)```")

// Each example of the documentation is found as it was, and fine as it becomes.
func TestDocs_examples(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/gormlockvet.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := sources{}
	seen := map[string]bool{}
	for _, found := range example.FindAllStringSubmatch(string(text), -1) {
		name := found[1]
		seen[name] = true
		f, ok := frames[name]
		if !ok {
			t.Errorf("the example of %s has no frame", name)
			continue
		}
		programs[name+"/wrong/main.go"] = program(f, side(found[2], '-'))
		programs[name+"/right/main.go"] = program(f, side(found[2], '+'))
	}
	found := map[string][]string{}
	_, all := look(t, scratchModule(t, programs), "./...")
	for _, f := range sorted(all) {
		found[filepath.Dir(f.file)] = append(found[filepath.Dir(f.file)], f.name)
	}
	for name := range frames {
		if !seen[name] {
			t.Errorf("the documentation has no example of %s", name)
		}
		if wrong := found[name+"/wrong"]; !slices.Equal(wrong, []string{name}) {
			t.Errorf("%s: found in the example: %q", name, wrong)
		}
		if right := found[name+"/right"]; len(right) > 0 {
			t.Errorf("%s: found in the cure: %q", name, right)
		}
	}
}

var trap = regexp.MustCompile(`(?m)^## .*\[(.*)\]$`)

// The traps name findings that there are, and none is left out.
func TestDocs_traps(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	for _, found := range trap.FindAllStringSubmatch(readFile(t, "../docs/traps.md"), -1) {
		for name := range strings.SplitSeq(found[1], ", ") {
			named[name] = true
		}
	}
	for _, a := range gormlockvet.Analyzers() {
		name := strings.TrimPrefix(a.Name, "gormlock")
		if name != "silenced" && !named[name] {
			t.Errorf("no trap is found by %s", name)
		}
		delete(named, name)
	}
	for name := range named {
		t.Errorf("there is no finding %s", name)
	}
}

// side returns one side of a diff.
func side(diff string, sign byte) string {
	var kept strings.Builder
	for line := range strings.Lines(diff) {
		if line[0] == ' ' || line[0] == sign {
			kept.WriteString(line[1:])
		}
	}
	return kept.String()
}

func program(f frame, code string) string {
	account := "type Account struct {\n\tID, Balance int64\n\tVersion int64 `gorm:\"default:1\" gormlock:\"version\"`\n}\n"
	main := "func main() {}\n"
	if strings.Contains(f.after, "func main()") {
		main = ""
	}
	return "package main\n\nimport (\n\t\"context\"\n\t\"time\"\n\n\t\"github.com/gormlock/gormlock\"\n\t\"github.com/gormlock/gormlock/lockkey\"\n" +
		"\t\"gorm.io/driver/postgres\"\n\t\"gorm.io/gorm\"\n)\n\nvar _ = []any{context.Background, time.Now, gormlock.New, lockkey.Of, postgres.Open, gorm.Open}\n\n" +
		account + main + f.before + code + f.after + "\n"
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
