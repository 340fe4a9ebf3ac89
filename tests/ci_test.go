package tests

import (
	"os/exec"
	"strings"
	"testing"
)

// A step of .ci/run that fails ends the run, whether it is a program or a function, beside others or after them.
func TestCI_failsWithItsSteps(t *testing.T) {
	t.Parallel()
	const functions = `
		good() { true; echo done; }
		bad() { false; echo went on; }
	`
	for name, test := range map[string]struct {
		steps string
		said  []string
		fails bool
	}{
		"all is well": {`start "a" good; start "b" echo hello; step "c" good; finish "b"; finish "a"`,
			[]string{"== c\ndone\n", "== b\nhello\n", "== a\ndone\n"}, false},
		"a function":                  {`step "a" bad`, []string{"== FAILED: a"}, true},
		"a program":                   {`step "a" false`, []string{"== FAILED: a"}, true},
		"a function beside":           {`start "a" bad; finish "a"`, []string{"== a", "== FAILED: a"}, true},
		"a program beside":            {`start "a" false; finish "a"`, []string{"== FAILED: a"}, true},
		"the first of two beside":     {`start "a" bad; start "b" good; finish "b"; finish "a"`, []string{"== b\ndone", "== FAILED: a"}, true},
		"what is not there":           {`start "a" nothing-of-this-name; finish "a"`, []string{"== FAILED: a"}, true},
		"a step, with another beside": {`start "a" sleep 60; step "b" bad`, []string{"== FAILED: b"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := exec.CommandContext(t.Context(), "bash", "-c", ". .ci/steps\n"+functions+test.steps+"\necho all passed")
			run.Dir = ".."
			out, err := run.CombinedOutput()
			if (err != nil) != test.fails || strings.Contains(string(out), "all passed") == test.fails || strings.Contains(string(out), "went on") {
				t.Errorf("%v:\n%s", err, out)
			}
			for _, said := range test.said {
				if !strings.Contains(string(out), said) {
					t.Errorf("does not say %q:\n%s", said, out)
				}
			}
		})
	}
}
