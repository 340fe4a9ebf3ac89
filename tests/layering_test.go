package tests

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

const (
	ours       = "github.com/gormlock/gormlock"
	gormModule = "gorm.io/gorm"
	pgxModule  = "github.com/jackc/pgx/v5"
	otelModule = "go.opentelemetry.io/otel"
)

// storeys are the floors of the house, the root on top: what stands on one imports of the others only what stands below it.
var storeys = [][]string{
	{"."},
	{"internal/migrate", "internal/merge", "internal/aggregate"},
	{"internal/attempt", "internal/belongs", "internal/check", "internal/claim", "internal/reload", "internal/once"},
	{"internal/guard", "internal/xact"},
	{"internal/reading", "internal/children", "internal/form", "internal/match", "internal/concern"},
	{"internal/whereabouts", "internal/asked"},
	{"internal/memory", "internal/compare", "internal/shared", "internal/unlinked", "internal/operation"},
	{"internal/model"},
	{"internal/column", "internal/rowlock"},
	{"internal/journal"},
	{"internal/mark", "internal/install"},
	{"internal/fault", "internal/statement"},
	{"internal/lockrequest", "internal/keynames", "internal/sqltx", "internal/literal", "internal/repeat", "internal/dialect"},
	{"internal/pretend", "internal/newtable"},
	{"internal/sqltext", "internal/sqlstate", "internal/lockid", "internal/cause", "internal/lookalike", "internal/otherdb", "internal/absent", "internal/sound"},
}

// mayImport holds what each package may import besides the standard library: ours by the path from
// the root ("." is the root), of others by module. A package that is not here is an error.
var mayImport = map[string][]string{
	".": {
		"advisory", "fence", "hooks", "lockkey", "observe", gormModule,
		"internal/aggregate", "internal/asked", "internal/attempt", "internal/belongs", "internal/claim", "internal/concern", "internal/fault", "internal/guard", "internal/check", "internal/install", "internal/journal", "internal/lockrequest", "internal/mark", "internal/merge", "internal/migrate",
		"internal/model", "internal/once", "internal/reading", "internal/reload", "internal/rowlock", "internal/sqlstate", "internal/statement", "internal/whereabouts", "internal/xact",
	},
	"hooks":               {gormModule},
	"lockkey":             {},
	"lockkey/compat":      {"lockkey"},
	"fence":               {"internal/absent", "internal/newtable", "internal/otherdb", "internal/tokens"},
	"observe":             {},
	"observe/otelobserve": {"observe", otelModule, otelModule + "/metric", otelModule + "/trace"},
	"advisory":            {"internal/absent", "lockkey", "internal/lockrequest", "internal/lookalike", "internal/otherdb"},
	"pgxlock":             {"internal/absent", "advisory", "lockkey", "internal/cause", "internal/lockrequest", "internal/repeat", "internal/sqlstate", pgxModule},
	"lease":               {"internal/absent", "internal/tables", "advisory", "lockkey", "fence", "observe", "internal/cause", "internal/holder", "internal/newtable", "internal/otherdb", "internal/pgarray", "internal/pgtime", "internal/sift", "internal/sound", "internal/sqlstate", "internal/sqltx", "internal/tokens"},
	"sessionlock": {
		"advisory", "lockkey", "fence", "observe", "internal/holder", "internal/lookalike", "internal/otherdb", "internal/sqlstate", "internal/tokens", "internal/waits", "sessionlock/internal/dial", "sessionlock/internal/wire", pgxModule,
	},
	"sessionlock/internal/dial": {"internal/lookalike", "sessionlock/internal/wire", pgxModule},
	"sessionlock/internal/wire": {"internal/holder", "internal/tokens", "internal/waits", pgxModule},

	"work": {
		".", "observe", "internal/holder", "internal/jobmark", "internal/install", "internal/fault", "internal/journal", "internal/mark", "internal/pgarray", "internal/pgtime", "internal/sift", "internal/sound", "internal/sqlstate", "internal/statement", "internal/xact",
		gormModule, pgxModule,
	},

	"etag": {
		".", "internal/column", "internal/fault", "internal/guard", "internal/holder", "internal/memory", "internal/model", "internal/statement", gormModule,
	},

	"internal/migrate": {"internal/journal", "internal/mark",
		"internal/attempt", "internal/check", "internal/fault", "internal/install", "internal/lockrequest", "internal/statement", "internal/tables", "internal/xact",
		"advisory", "lockkey", gormModule,
	},
	"internal/aggregate": {"internal/asked", "internal/dialect", "internal/fault", "internal/guard", "internal/journal", "internal/memory", "internal/model", "internal/reload", "internal/sqlstate", "internal/statement", "internal/whereabouts", gormModule},
	"internal/belongs":   {"internal/asked", "internal/children", "internal/fault", "internal/guard", "internal/journal", "internal/model", "internal/shared", "internal/sqlstate", "internal/statement", "internal/unlinked", gormModule},
	"internal/merge": {
		"internal/absent", "internal/asked", "internal/attempt", "internal/column", "internal/compare", "internal/dialect", "internal/fault", "internal/guard", "internal/install", "internal/journal", "internal/memory", "internal/model",
		"internal/reload", "internal/rowlock", "internal/sqlstate", "internal/statement", "internal/whereabouts", gormModule,
	},
	"internal/check":  {"internal/journal", "internal/mark", "internal/tables", "internal/fault", "internal/install", "internal/model", "internal/statement", "fence", gormModule},
	"internal/tables": {"internal/keynames", "internal/newtable", "fence"},
	"internal/attempt": {
		"internal/fault", "internal/install", "internal/journal", "internal/lockrequest", "internal/repeat", "internal/statement", "internal/xact", "observe", gormModule,
	},
	"internal/repeat": {"internal/cause"},
	"internal/claim": {
		"internal/sqltext",
		"internal/asked", "internal/dialect", "internal/fault", "internal/guard", "internal/install", "internal/journal", "internal/mark", "internal/model", "internal/pgarray", "internal/rowlock", "internal/sqlstate", "internal/statement",
		"internal/xact", "observe", gormModule,
	},
	"internal/reload": {
		"internal/absent", "internal/asked", "internal/dialect", "internal/fault", "internal/guard", "internal/install", "internal/journal", "internal/mark", "internal/memory", "internal/model", "internal/reading", "internal/rowlock", "internal/sqlstate", "internal/statement", "internal/whereabouts", "internal/xact",
		gormModule,
	},
	"internal/once": {"internal/absent", "internal/fault", "internal/install", "internal/journal", "internal/mark", "internal/model", "internal/newtable", "internal/reading", "internal/sqlstate", "internal/statement", "advisory", gormModule},
	"internal/guard": {
		"internal/asked", "internal/children", "internal/compare", "internal/concern", "internal/dialect", "internal/column", "internal/fault", "internal/form", "internal/install", "internal/journal", "internal/mark", "internal/match", "internal/memory", "internal/model", "internal/reading",
		"internal/shared", "internal/sqlstate", "internal/sqltext", "internal/operation", "internal/statement", "internal/unlinked", "internal/whereabouts", "fence", gormModule,
	},
	"internal/concern": {"internal/fault", "internal/journal", "internal/mark", "internal/memory", "internal/model", "internal/statement", "hooks", gormModule},
	"internal/form":    {"internal/memory", "internal/model", "internal/statement", gormModule},
	"internal/match":   {"internal/column", "internal/statement", gormModule},
	"internal/asked":   {"internal/absent", "internal/fault", "internal/mark", "internal/memory", "internal/model", "internal/statement", "fence", gormModule},
	"internal/reading": {
		"internal/column", "internal/dialect", "internal/fault", "internal/install", "internal/journal", "internal/memory", "internal/model", "internal/pgarray", "internal/sqlstate", "internal/sqltext", "internal/sqltx", "internal/statement", "internal/whereabouts", gormModule,
	},
	"internal/children":    {"internal/column", "internal/fault", "internal/journal", "internal/memory", "internal/model", "internal/statement", "internal/whereabouts", gormModule},
	"internal/whereabouts": {"internal/column", "internal/fault", "internal/journal", "internal/memory", "internal/model", "internal/sqlstate", "internal/statement", gormModule},
	"internal/xact": {
		"internal/fault", "internal/install", "internal/journal", "internal/lockrequest", "internal/mark", "internal/pretend", "internal/sqltext", "internal/sqltx", "internal/statement", "advisory", "lockkey", gormModule,
	},
	"internal/compare":     {"internal/column", "internal/dialect", "internal/statement", gormModule},
	"internal/memory":      {"internal/column", "internal/journal", "internal/model", "internal/statement", gormModule},
	"internal/shared":      {"internal/model", "internal/statement", gormModule},
	"internal/unlinked":    {"internal/fault", "internal/install", "internal/journal", "internal/model", "internal/statement", gormModule},
	"internal/operation":   {"internal/fault", "internal/install", "internal/model", "internal/statement", gormModule},
	"internal/model":       {"internal/column", "internal/dialect", "internal/fault", "internal/install", "internal/statement", gormModule},
	"internal/column":      {"internal/dialect", "internal/fault", "internal/statement", "fence", gormModule},
	"internal/rowlock":     {"internal/dialect", "internal/fault", "internal/install", "internal/journal", "internal/mark", "internal/sqlstate", "internal/sqltext", "internal/sqltx", "internal/statement", "observe", gormModule},
	"internal/journal":     {"internal/cause", "internal/dialect", "internal/fault", "internal/install", "internal/lockrequest", "internal/sqlstate", "internal/sqltext", "internal/sqltx", "internal/statement", "advisory", "lockkey", "observe", gormModule},
	"internal/mark":        {"internal/fault", "internal/sqltx", "internal/statement", gormModule},
	"internal/install":     {"advisory", "internal/fault", "internal/keynames", "internal/literal", "internal/lockid", "internal/lockrequest", "internal/lookalike", "internal/pretend", "lockkey", "observe", gormModule},
	"internal/dialect":     {"internal/sqlstate", gormModule},
	"internal/literal":     {"internal/sqltext", gormModule},
	"internal/fault":       {"internal/cause", "internal/otherdb", "advisory", "fence", gormModule},
	"internal/statement":   {"internal/dialect", "internal/sqltext", "internal/sqltx", "advisory", gormModule},
	"internal/lookalike":   {},
	"internal/absent":      {},
	"internal/otherdb":     {},
	"internal/newtable":    {"internal/absent", "internal/otherdb"},
	"internal/lockrequest": {"internal/cause", "internal/lockid", "internal/lookalike", "internal/otherdb", "internal/pretend", "internal/sqlstate", "internal/sqltext", "lockkey"},
	"internal/pretend":     {"internal/lockid", "internal/sqlstate"},
	"internal/keynames":    {"internal/lockid", "internal/newtable", "internal/otherdb", "internal/sqlstate"},
	"internal/sqltx":       {"internal/cause", "internal/sqlstate", "internal/sqltext"},
	"internal/sqltext":     {},
	"internal/cause":       {},
	"internal/sound":       {},
	"internal/sqlstate":    {},
	"internal/lockid":      {"lockkey"},

	"inspect": {
		"inspect/internal/page", "inspect/internal/poll", "inspect/internal/ending", "inspect/internal/words", "lockkey", "lockkey/compat", "observe",
		"internal/cause", "internal/halt", "internal/jobmark", "internal/keynames", "internal/lockid", "internal/otherdb",
	},
	"internal/jobmark":        {},
	"inspect/internal/page":   {},
	"inspect/internal/words":  {"internal/lockrequest", "internal/waits", "lockkey"},
	"inspect/internal/poll":   {},
	"inspect/internal/ending": {"internal/halt", "internal/otherdb"},
	"internal/halt":           {},
	"internal/holder":         {"internal/lockid", "internal/lockrequest", "advisory", "lockkey", "observe"},
	"internal/pgarray":        {},
	"internal/pgtime":         {},
	"internal/sift":           {"internal/sqlstate"},
	"internal/tokens":         {"internal/pgarray", "internal/sqlstate"},
	"internal/waits":          {},

	"cmd/gormlock": {
		"cmd/gormlock/internal/cli", "cmd/gormlock/internal/terminal", "cmd/gormlock/internal/look", "cmd/gormlock/internal/jobs", "cmd/gormlock/internal/key", "cmd/gormlock/internal/doctor",
	},
	"cmd/gormlock/internal/terminal": {},
	"cmd/gormlock/internal/cli":      {"cmd/gormlock/internal/terminal"},
	"cmd/gormlock/internal/server":   {"cmd/gormlock/internal/terminal", "inspect", "internal/otherdb", "internal/sqlstate", pgxModule},
	"cmd/gormlock/internal/look":     {"cmd/gormlock/internal/cli", "cmd/gormlock/internal/server", "cmd/gormlock/internal/terminal", "inspect", "internal/halt", "lockkey"},
	"cmd/gormlock/internal/jobs":     {"cmd/gormlock/internal/cli", "cmd/gormlock/internal/server", "cmd/gormlock/internal/terminal", "internal/jobmark"},
	"cmd/gormlock/internal/key": {
		"cmd/gormlock/internal/cli", "cmd/gormlock/internal/look", "cmd/gormlock/internal/server", "cmd/gormlock/internal/terminal",
		"inspect", "internal/lockid", "lockkey", "lockkey/compat",
	},
	"cmd/gormlock/internal/doctor": {
		"cmd/gormlock/internal/cli", "cmd/gormlock/internal/server", "cmd/gormlock/internal/terminal", ".", "fence", "inspect", "internal/lookalike", "internal/sqlstate", "internal/tables", "sessionlock", pgxModule,
	},

	"internal/pgserver": {pgxModule},
	"internal/wiretap":  {},
	"internal/modules":  {},
}

// mayReach holds the modules that come into a user's binary, those that gorm and pgx bring themselves
// included. What tests, benchmarks and examples need is not among them.
var mayReach = []string{
	gormModule, "github.com/jinzhu/inflection", "github.com/jinzhu/now",
	pgxModule, "github.com/jackc/pgpassfile", "github.com/jackc/pgservicefile", "github.com/jackc/puddle/v2",
	"golang.org/x/sync", "golang.org/x/text",
}

// reachesMore holds what comes with an adapter besides.
var reachesMore = map[string][]string{
	"observe/otelobserve": {
		otelModule, otelModule + "/metric", otelModule + "/trace", "github.com/cespare/xxhash/v2", "github.com/go-logr/logr",
		"github.com/go-logr/stdr", "go.opentelemetry.io/auto/sdk",
	},
}

// neverReaches holds what stays out of a package however far down, so that a user compiles only
// what they use.
var neverReaches = map[string][]string{
	".":           {pgxModule},
	"hooks":       {pgxModule},
	"advisory":    {gormModule, pgxModule},
	"lease":       {gormModule, pgxModule},
	"inspect":     {gormModule, pgxModule},
	"etag":        {pgxModule},
	"sessionlock": {gormModule},
	"pgxlock":     {gormModule},
}

// programs are the directories of what is run and imported by nobody, with what that may import of internal besides its own.
var programs = map[string][]string{
	"examples":                {"internal/pgserver", "internal/wiretap"}, // a server to run on, and a counter of round trips
	"bench":                   {"internal/pgserver", "internal/wiretap"},
	"scripts":                 {"internal/modules", "internal/pgserver"},
	"gormlockvet":             {},
	"internal/pgserver/fetch": {},
	"tests":                   {"*"},
}

func TestLayering(t *testing.T) {
	t.Parallel()
	packages := load(t)
	if len(packages.own()) == 0 {
		t.Fatal("go list shows no package of this module")
	}
	for _, violation := range packages.violations() {
		t.Error(violation)
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(mayImport)), slices.Concat(storeys...)) {
		if _, there := packages[strings.TrimSuffix(ours+"/"+name, "/.")]; !there {
			t.Errorf("%s has a rule and is not there", name)
		}
	}
}

// The rules see what they are there for: one import too many in a sound graph is one violation.
func TestLayering_seesEachBadImport(t *testing.T) {
	t.Parallel()
	sound := graph{
		ours:                          {Imports: []string{ours + "/advisory", gormModule, "fmt"}},
		ours + "/advisory":            {Imports: []string{ours + "/lockkey", "database/sql"}},
		ours + "/lockkey":             {Imports: []string{"fmt"}},
		ours + "/sessionlock":         {Imports: []string{ours + "/advisory", pgxModule}},
		ours + "/internal/pgserver":   {Imports: []string{pgxModule}},
		ours + "/internal/pgtest":     {Imports: []string{ours + "/internal/pgserver", "testing"}},
		ours + "/internal/wiretap":    {Imports: []string{"fmt"}},
		ours + "/internal/guard":      {Imports: []string{ours + "/internal/model", ours + "/internal/mark"}},
		ours + "/internal/model":      {Imports: []string{ours + "/internal/statement"}},
		ours + "/internal/mark":       {Imports: []string{ours + "/internal/statement"}},
		ours + "/internal/statement":  {Imports: []string{gormModule}},
		ours + "/observe/otelobserve": {Imports: []string{otelModule}},
		ours + "/examples/tour":       {Imports: []string{ours, ours + "/internal/pgserver", ours + "/internal/wiretap"}},
		ours + "/tests/docs/runner":   {Imports: []string{ours, ours + "/internal/pgtest"}},
		otelModule:                    {Module: &mod{otelModule}},
		gormModule:                    {Module: &mod{gormModule}, Imports: []string{"database/sql"}},
		pgxModule:                     {Module: &mod{pgxModule}},
		"go.uber.org/goleak":          {Module: &mod{"go.uber.org/goleak"}},
		"fmt":                         {Standard: true},
		"database/sql":                {Standard: true},
		"testing":                     {Standard: true},
	}
	if v := sound.violations(); len(v) > 0 {
		t.Fatalf("the sound graph has violations: %q", v)
	}
	for _, bad := range []struct{ from, to, want string }{
		{ours, pgxModule, ". may not import " + pgxModule},
		{ours + "/lockkey", ours + "/advisory", "lockkey may not import advisory"},
		{ours + "/lockkey", gormModule, "lockkey may not import " + gormModule},
		{ours + "/sessionlock", gormModule, "sessionlock may not reach " + gormModule},
		{ours + "/advisory", "go.uber.org/goleak", "advisory may not reach go.uber.org/goleak"},
		{gormModule, pgxModule, ". may not reach " + pgxModule + ": . > " + gormModule + " > " + pgxModule},
		{pgxModule, "testing", "sessionlock may not reach testing: sessionlock > " + pgxModule + " > testing"},
		{ours + "/advisory", ours + "/internal/pgserver", "advisory may not import internal/pgserver"},
		{ours + "/examples/tour", ours + "/internal/pgtest", "examples/tour may not import internal/pgtest"},
		{ours + "/internal/pgserver", "testing", "internal/pgserver may not import testing"},
		{ours + "/unheard", "fmt", "unheard has no rule"},
		{ours + "/internal/model", ours + "/internal/guard", "internal/model may not import internal/guard: it does not stand below"},
		{ours + "/internal/mark", ours + "/internal/install", "internal/mark may not import internal/install: it does not stand below"},
		{ours + "/internal/guard", ours, "internal/guard may not import .: it does not stand below"},
		{ours + "/internal/guard", ours + "/advisory", "internal/guard may not import advisory"},
		{ours + "/advisory", otelModule, "advisory may not reach " + otelModule},
		{ours + "/bench", ours + "/internal/guard", "bench may not import internal/guard"},
	} {
		changed := maps.Clone(sound)
		p := changed[bad.from]
		p.Imports = append(slices.Clone(p.Imports), bad.to)
		changed[bad.from] = p
		if !slices.ContainsFunc(changed.violations(), func(v string) bool { return strings.HasPrefix(v, bad.want) }) {
			t.Errorf("%s imports %s: got %q, want %q among them", bad.from, bad.to, changed.violations(), bad.want)
		}
	}
}
