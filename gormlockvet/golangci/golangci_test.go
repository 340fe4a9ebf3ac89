package golangci_test

import (
	"strings"
	"testing"

	"github.com/golangci/plugin-module-register/register"

	"github.com/gormlock/gormlock/gormlockvet"
	_ "github.com/gormlock/gormlock/gormlockvet/golangci"
)

func TestPlugin(t *testing.T) {
	t.Parallel()
	newPlugin, err := register.GetPlugin("gormlockvet")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		settings any
		left     int
		err      string
	}{
		{nil, 0, ""},
		{map[string]any{"disable": []string{"held", "silenced"}}, 2, ""},
		{map[string]any{"disable": []string{"holding"}}, 0, `there is no finding "holding" to disable`},
		{map[string]any{"disabled": []string{"held"}}, 0, "unknown field"},
	} {
		plugin, err := newPlugin(c.settings)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v: %v, want %q", c.settings, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v: %v", c.settings, err)
			continue
		}
		analyzers, err := plugin.BuildAnalyzers()
		if err != nil || len(analyzers) != len(gormlockvet.Analyzers())-c.left {
			t.Errorf("%v: %d analyzers, %v", c.settings, len(analyzers), err)
		}
		if plugin.GetLoadMode() != register.LoadModeTypesInfo {
			t.Error("the analyzers need types")
		}
	}
}
