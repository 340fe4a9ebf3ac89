package cli

import (
	"flag"
	"strings"
	"testing"
)

func TestDidYouMean(t *testing.T) {
	t.Parallel()
	known := []string{"ls", "watch", "why", "key", "doctor", "terminate", "cancel"}
	for word, want := range map[string]string{
		"lss": "ls", "wacth": "watch", "docter": "doctor", "termnate": "terminate", "cancle": "cancel", "xyzzy": "", "": "", "terminator": "terminate",
	} {
		got := DidYouMean(word, known)
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestParse_flagsStandAnywhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args, rest string
		json       bool
		name       string
	}{
		{"a b --json", "a b", true, ""},
		{"--json a --name=x b", "a b", true, "x"},
		{"a --name x -- --json", "a --json", false, "x"},
		{"-- --name x", "--name x", false, ""},
		{"-7 -name -8 -9", "-7 -9", false, "-8"},
		{"a - --json", "a -", true, ""},
		{"--json -- a --", "a --", true, ""},
	} {
		set := flag.NewFlagSet("test", flag.ContinueOnError)
		json, name := set.Bool("json", false, ""), set.String("name", "", "")
		rest, err := Parse(set, strings.Fields(c.args))
		if err != nil || strings.Join(rest, " ") != c.rest || *json != c.json || *name != c.name {
			t.Errorf("%s: %q %v %q, %v", c.args, rest, *json, *name, err)
		}
	}
}
