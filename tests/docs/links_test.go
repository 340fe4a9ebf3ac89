package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link     = regexp.MustCompile(`\[([^\]]*)\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	testName = regexp.MustCompile(`\bTest[A-Z]\w*`)
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	exported = regexp.MustCompile(`\b(gormlock|gormlocktest|advisory|lockkey|compat|fence|sessionlock|lease|observe|otelobserve|inspect)\.([A-Z]\w*)`)
)

func TestDocs_linksLead(t *testing.T) {
	t.Parallel()
	links := 0
	for _, d := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(d.prose(), -1) {
			name, to := match[1], match[2]
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			links++
			if why := d.broken(name, to); why != "" {
				t.Errorf("%s: [%s](%s): %s", d.path, name, to, why)
			}
		}
	}
	if links == 0 {
		t.Error("the documents have no links")
	}
}

// A reader who starts at docs/index.md finds each page there.
func TestDocs_indexHasEachPage(t *testing.T) {
	t.Parallel()
	led := map[string]bool{"docs/index.md": true}
	all := documents(t)
	for _, d := range all {
		if d.path != "docs/index.md" {
			continue
		}
		for _, match := range link.FindAllStringSubmatch(d.prose(), -1) {
			path, _, _ := strings.Cut(match[2], "#")
			led[filepath.Join("docs", path)] = true
		}
	}
	for _, d := range all {
		if strings.HasPrefix(d.path, "docs/") && !led[d.path] {
			t.Errorf("docs/index.md does not lead to %s", d.path)
		}
	}
}

// broken says why a link leads nowhere, or not to the test that it is named by.
func (d document) broken(name, to string) string {
	path, anchor, _ := strings.Cut(to, "#")
	text := d.text
	if path != "" {
		target := filepath.Join(root, filepath.Dir(d.path), path)
		info, err := os.Stat(target)
		switch {
		case err != nil:
			return err.Error()
		case info.IsDir():
			return ""
		}
		content, err := os.ReadFile(target)
		if err != nil {
			return err.Error()
		}
		text = string(content)
	}
	if anchor != "" && !slices.Contains(anchors(text), anchor) {
		return "no such heading"
	}
	if test := testName.FindString(name); test != "" && !strings.Contains(text, "\nfunc "+test+"(t *testing.T)") {
		return "no such test there"
	}
	return ""
}

// anchors are the fragments that GitHub gives the headings of a document.
func anchors(text string) (found []string) {
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		kept := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(match[1]), "")
		found = append(found, strings.ReplaceAll(kept, " ", "-"))
	}
	return found
}

func TestDocs_brokenLinksAreSeen(t *testing.T) {
	t.Parallel()
	d := document{path: "docs/x.md", text: "# What, `it` costs"}
	for to, broken := range map[string]bool{
		"#what-it-costs": false, "#what": true, "../README.md": false, "../README.md#try-it": false, "../README.md#nothing": true,
		"README.md": true, "../tests": false, "../nothing": true,
	} {
		if got := d.broken("x", to) != ""; got != broken {
			t.Errorf("%s: broken %t", to, got)
		}
	}
	if d.broken("TestConformance", "../tests/locks/conformance_test.go") != "" || d.broken("TestConformance", "../xactlock_test.go") == "" ||
		d.broken("TestNothing", "../tests/locks/conformance_test.go") == "" {
		t.Error("tests are not looked for in the files that they are linked to")
	}
}

// Every test that a document names exists, linked or not.
func TestDocs_testsExist(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, match := range testFunc.FindAllStringSubmatch(string(text), -1) {
			tests[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, d := range documents(t) {
		for _, name := range testName.FindAllString(d.text, -1) {
			if named++; !tests[name] {
				t.Errorf("%s: there is no %s", d.path, name)
			}
		}
	}
	if named == 0 {
		t.Error("the documents name no test")
	}
}

// Every exported name that a document names exists, in a sentence too.
func TestDocs_namesExist(t *testing.T) {
	t.Parallel()
	c := newCompiler(t)
	for _, d := range documents(t) {
		for _, match := range exported.FindAllStringSubmatch(d.text, -1) {
			pkg := match[1]
			path, ok := c.paths[pkg]
			if !ok {
				t.Fatalf("testdata/all.go does not import %s", pkg)
			}
			found, err := c.importer.Import(path)
			if err != nil {
				t.Fatal(err)
			}
			if found.Scope().Lookup(match[2]) == nil {
				t.Errorf("%s: there is no %s", d.path, match[0])
			}
		}
	}
}
