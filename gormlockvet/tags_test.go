package gormlockvet_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The finding says of each model what gormlock says when it meets the model, in the same words: the two cannot drift apart.
func TestTags_asTheRuntime(t *testing.T) {
	t.Parallel()
	compareTags(t, runtimeSays(t, testdata(t)), findingSays(t, testdata(t)))
}

// So it does of every combination of a Go type, a tag of GORM's and one of gormlock's.
func TestTags_allCombinations(t *testing.T) {
	t.Parallel()
	models := combinations()
	models["tags/runtime/main.go"] = readFile(t, "testdata/tags/runtime/main.go")
	dir := scratchModule(t, models)
	said := runtimeSays(t, dir)
	compareTags(t, said, findingSays(t, dir))
	wrong := 0
	for _, text := range said {
		if text != "" {
			wrong++
		}
	}
	t.Logf("%d models, %d of them wrong", len(said), wrong)
	if wrong == 0 || wrong == len(said) {
		t.Error("the combinations show nothing")
	}
}

func compareTags(t *testing.T, runtime map[string]string, finding map[string]string) {
	t.Helper()
	for model, said := range runtime {
		_, said, ofOurs := strings.Cut(said, "gormlock: ")
		found := finding[model]
		switch {
		case !ofOurs && runtime[model] != "": // GORM refuses the model before gormlock sees it
		case !ofOurs && found != "":
			t.Errorf("%s: the run-time accepts it, the finding says %q", model, found)
		case ofOurs && found != said:
			t.Errorf("%s: the run-time says %q, the finding %q", model, said, found)
		}
	}
	for model, found := range finding {
		if _, ok := runtime[model]; !ok && model != "Wrong" { // which is there to be embedded
			t.Errorf("%s is not among the models that the run-time meets: %q", model, found)
		}
	}
}

// runtimeSays runs the program that prints what gormlock says of each model, by name.
func runtimeSays(t *testing.T, dir string) map[string]string {
	t.Helper()
	run := exec.CommandContext(t.Context(), "go", "run", "./tags/runtime")
	run.Dir = dir
	out, err := run.Output()
	if err != nil {
		t.Fatalf("go run: %v", err)
	}
	said := map[string]string{}
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return said
}

// findingSays returns the first that the finding says of each model, by name.
func findingSays(t *testing.T, dir string) map[string]string {
	t.Helper()
	said := map[string]string{}
	_, found := look(t, dir, "./tags/cases")
	for _, f := range slices.SortedFunc(maps.Keys(found), func(a, b finds) int { return cmp.Or(strings.Compare(a.file, b.file), a.line-b.line) }) {
		model, _, _ := strings.Cut(found[f], " ")
		model, _, _ = strings.Cut(model, ".")
		if f.name == "tags" && said[model] == "" {
			said[model] = found[f]
		}
	}
	return said
}

// combinations is a package with a model for each combination.
func combinations() sources {
	var source, all, tables strings.Builder
	n := 0
	for _, kind := range []string{
		"int64", "int32", "uint8", "uint32", "*int64", "number", "sql.NullInt64", "sql.NullInt16", "sql.NullTime", "time.Time", "*time.Time",
		"string", "bool", "[]byte", "float64", "[]string", "Other",
	} {
		for _, gorm := range []string{
			"", "-", "-:all", "->", "<-:create", "<-", "-:migration", "column:xmin;->;-:migration", "column:xmin;->", "primaryKey", "default:1",
			"default:0", "default:now()", "type:integer", "type:bigint", "type:numeric(20)", "size:16", "autoIncrement", "serializer:json",
			"autoUpdateTime", "not null;default:3",
		} {
			for _, ours := range []string{
				"version", "version,rails", "version,hibernate", "version,xmin", "version,initial=0", "version,initial=3", "version,rails,initial=1",
				"version,", "version,rails,xmin", "version,initial=x", "fence", "fence,key=a", "fence,key=", "unversioned", "versions", "root", "root,x",
			} {
				n++
				fmt.Fprintf(&source, "type M%d struct {\n\tID int64\n\tV %s `gorm:%q gormlock:%q`\n}\n", n, kind, gorm, ours)
				fmt.Fprintf(&tables, "func (M%d) TableName() string { return \"m\" }\n", n) // a model, and no mere part of one
				fmt.Fprintf(&all, "\t&M%d{},\n", n)
			}
		}
	}
	return sources{"tags/cases/cases.go": "package cases\n\nimport (\n\t\"database/sql\"\n\t\"time\"\n)\n\ntype number int64\n\n" +
		"type Other struct {\n\tID int64\n}\n\n" + source.String() + "\nfunc init() { All = []any{\n" + all.String() + "} }\n\nvar All []any\n\n" +
		tables.String()}
}
