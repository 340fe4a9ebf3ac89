package invariants

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/invariants/internal/models"
)

type (
	Owner    = models.Owner
	Group    = models.Group
	Part     = models.Part
	SoftPart = models.SoftPart
	Columns  = models.Columns
)

var rooted = []*shape{shapeOf(models.OfPart, 1, intKey), shapeOf(models.OfSoftPart, 0, intKey)}

func migrateRooted(t testing.TB, w *world) {
	t.Helper()
	must(t, w.migrateLoose(t, rooted).AutoMigrate(&Owner{}, &Group{}))
	must(t, w.audit("owners", []string{"id"}))
	must(t, w.audit("groups", []string{"id"}))
}

// parted is what a cell knows of the roots of its rows.
type parted struct {
	variant      string
	owner, other int64
	held         *Owner // if the struct holds it
	from         int64
}

// variants are what the program does about the root beside the statement.
var variants = []string{"", "moves", "holds"}

func (p *parted) own(row reflect.Value) {
	if p.owner != 0 {
		setOwner(row, p.owner)
	}
}

func setOwner(row reflect.Value, id int64) {
	field := row.FieldByName("OwnerID")
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.ValueOf(&id))
		return
	}
	field.SetInt(id)
}

func (p *parted) seed(t testing.TB, c *cell) {
	t.Helper()
	if !c.shape.has("OwnerID") {
		return
	}
	p.owner, p.other = c.w.keys.Add(1), c.w.keys.Add(1)
	c.w.exec(t, "INSERT INTO groups (id, title, version) VALUES ($1, 'g', 5)", p.owner)
	c.w.exec(t, "INSERT INTO owners (id, title, version, group_id) VALUES ($1, 'o', 5, $1), ($2, 'p', 5, $1)", p.owner, p.other)
}

// hold lets the struct hold its root, as it was read.
func (p *parted) hold(t testing.TB, c *cell) {
	t.Helper()
	if p.variant == "holds" {
		p.held = &Owner{}
		must(t, c.w.plain.First(p.held, p.owner).Error)
		c.h.row().FieldByName("Owner").Set(reflect.ValueOf(p.held))
	}
	p.from = c.w.now(t)
}

// move lets the program give the struct to another root.
func (p *parted) move(h *held) {
	if p.variant == "moves" {
		value := any(p.other)
		if h.row().FieldByName("OwnerID").Kind() == reflect.Pointer {
			value = &p.other
		}
		h.assign("OwnerID", value)
	}
}

// mayRefuse reports whether an error is one of those that say whose root would not move.
func (p *parted) mayRefuse(err error) bool {
	return p.owner != 0 && (strings.Contains(err.Error(), "has a root") || strings.Contains(err.Error(), "not given by pointer") || errors.Is(err, gormlock.ErrNoTransaction))
}

// strays is the oracle: the changes of parts that were committed without a move of each root they belonged to before and after, in
// the same transaction, and the roots that moved more than once in one.
const strays = `
SELECT 'root stood' AS rule, c.op || ' ' || c.tab || ' ' || c.key || ' of ' || r.tab || ' ' || r.root AS what, c.tx
FROM audit c CROSS JOIN LATERAL (VALUES ('owners', c.before ->> 'owner_id'), ('owners', c.after ->> 'owner_id'), ('groups', c.before ->> 'group_id'), ('groups', c.after ->> 'group_id')) r (tab, root)
WHERE c.id > @from AND c.writer = 'writer' AND c.tab IN ('parts', 'soft_parts', 'owners') AND r.root <> '0' AND NOT EXISTS (
	SELECT FROM audit o WHERE o.tab = r.tab AND o.tx = c.tx AND o.key = r.root
	AND (o.op <> 'UPDATE' OR o.before ->> 'version' IS DISTINCT FROM o.after ->> 'version'))
UNION ALL
SELECT 'root moved twice', o.tab || ' ' || o.key || ', ' || count(*) || ' times', o.tx FROM audit o
WHERE o.id > @from AND o.writer = 'writer' AND o.tab IN ('owners', 'groups') AND o.op = 'UPDATE' AND o.before ->> 'version' IS DISTINCT FROM o.after ->> 'version'
	AND o.before - 'version' = o.after - 'version' -- a write of its own moves it again
GROUP BY o.tab, o.key, o.tx HAVING count(*) > 1`

type stray struct {
	Rule, What string
	Tx         int64
}

func (w *world) strays(t testing.TB, from int64) (all []stray) {
	t.Helper()
	must(t, w.plain.Raw(strays, map[string]any{"from": from}).Scan(&all).Error)
	return all
}

// judge asks the oracle, before others write.
func (p *parted) judge(t testing.TB, c *cell) {
	t.Helper()
	if p.owner == 0 {
		return
	}
	for _, one := range c.w.strays(t, p.from) {
		switch {
		case one.Rule == "root moved twice" && c.isHidden(): // what the transaction did before is not known
		case one.Rule == "root stood" && (strings.HasPrefix(c.form.name, "raw ") || strings.HasPrefix(c.form.name, "Table ")): // docs/versions.md: without a model nothing moves
		default:
			c.report(one.Rule, "%s", one.What)
		}
	}
	if c.err == nil && !c.undone() { // what moves a root has read a part
		c.changes = slices.DeleteFunc(c.changes, func(one change) bool { return one.Tab == "owners" || one.Tab == "groups" })
	}
	if p.held == nil {
		return
	}
	var row Owner
	must(t, c.w.plain.First(&row, p.owner).Error)
	switch held := p.held.Version; {
	case held > row.Version:
		c.report("root ahead", "it is at %d, its row at %d", held, row.Version)
	case held != row.Version && held != 0 && !c.form.apart && c.form.kind == checked && c.state.fresh && c.err == nil && c.end == nil && !c.undone() && !c.isHidden():
		c.report("root behind", "it is at %d, its row at %d", held, row.Version)
	}
}

// TestRooted runs each form on parts: in each state, and in each transaction, with roots that are held and that change.
func TestRooted(t *testing.T) {
	t.Parallel()
	var cells []*cell
	n := 0
	add := func(f *form, st *state, sc *scope) {
		n++
		c := &cell{form: f, shape: rooted[n%len(rooted)], state: st, scope: sc, config: configurations[n/5%len(configurations)].name}
		c.parted.variant = variants[n/2%len(variants)]
		for i := 0; !c.fitsPart() && i < len(configurations)*len(rooted); i++ {
			c.shape, c.config = rooted[i%len(rooted)], configurations[i/len(rooted)].name
		}
		if c.fitsPart() {
			cells = append(cells, c)
		}
	}
	for i := range forms {
		at := 0
		if forms[i].inside {
			at = 2
		}
		for j := range states {
			add(&forms[i], &states[j], &scopes[at])
		}
		for j := range scopes {
			if (i+j)%7 == 0 {
				add(&forms[i], &states[0], &scopes[j])
			}
		}
	}
	seen := &tally{}
	runRooted(t, thinned(chosenOf(cells, itself)), seen)
	seen.list(t)
	t.Logf("%v", seen)
}
