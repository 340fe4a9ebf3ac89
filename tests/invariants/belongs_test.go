package invariants

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/invariants/internal/models"
)

// Clerk belongs to others by foreign keys of each kind: a number, one that may be NULL, and the code of what is held by value.
type Clerk struct {
	ID       int64
	A, B     int64
	LandID   int64
	Land     *Land
	HomeID   *int64
	Home     *Land
	DeskCode string
	Desk     Desk  `gorm:"foreignKey:DeskCode;references:Code"`
	Version  int64 `gormlock:"version"`
}

type (
	Land struct {
		ID   int64
		Name string
	}
	Desk struct {
		ID   int64
		Code string `gorm:"uniqueIndex"`
	}
)

var clerks = shapeOf(models.Plainly[Clerk](), 1, intKey)

// bond is a foreign key with its association. A key is a number here, and 0 is none.
type bond struct {
	column, field, relation string
	key                     func(c *Clerk) int64
	setKey                  func(c *Clerk, n int64)
	held                    func(c *Clerk) int64
	hold                    func(c *Clerk, n int64)
	value                   func(n int64) any
}

func code(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint("d", n)
}

func number(code string) (n int64) {
	_, _ = fmt.Sscanf(code, "d%d", &n)
	return n
}

func landOf(l *Land) int64 {
	if l == nil {
		return 0
	}
	return l.ID
}

func newLand(n int64) *Land {
	if n == 0 {
		return nil
	}
	return &Land{ID: max(n, 0), Name: "l"}
}

var bonds = []bond{
	{"land_id", "LandID", "Land", func(c *Clerk) int64 { return c.LandID }, func(c *Clerk, n int64) { c.LandID = n },
		func(c *Clerk) int64 { return landOf(c.Land) }, func(c *Clerk, n int64) { c.Land = newLand(n) }, func(n int64) any { return n }},
	{"home_id", "HomeID", "Home", func(c *Clerk) int64 {
		if c.HomeID == nil {
			return 0
		}
		return *c.HomeID
	}, func(c *Clerk, n int64) {
		if c.HomeID = &n; n == 0 {
			c.HomeID = nil
		}
	}, func(c *Clerk) int64 { return landOf(c.Home) }, func(c *Clerk, n int64) { c.Home = newLand(n) }, func(n int64) any { return n }},
	{"desk_code", "DeskCode", "Desk", func(c *Clerk) int64 { return number(c.DeskCode) }, func(c *Clerk, n int64) { c.DeskCode = code(n) },
		func(c *Clerk) int64 { return number(c.Desk.Code) }, func(c *Clerk, n int64) {
			if c.Desk = (Desk{ID: max(n, 0), Code: code(n)}); n == aNew {
				c.Desk.Code = fmt.Sprint("d", 1_000_000+c.ID)
			}
		}, func(n int64) any { return code(n) }},
}

const aNew = -1 // an association that is not stored yet

// bonded is one crossing of a statement, a bond, what the struct holds and names, and a transaction.
type bonded struct {
	*bonding
	bond   *bond
	holds  int64 // the association: 1 was read
	names  int64 // the foreign key: 1 was read
	stale  bool
	scope  *scope
	config string

	w     *world
	x, y  *Clerk
	err   error
	found []violation
}

func (b *bonded) name() string {
	return fmt.Sprintf("%s | %s holds %d, key %d | stale %v | %s | %s", b.bonding.name, b.bond.relation, b.holds, b.names, b.stale, b.scope.name, b.config)
}

func (b *bonded) report(rule, format string, args ...any) {
	b.found = append(b.found, violation{rule, fmt.Sprintf(format, args...)})
}

// asked are the keys that the caller wants to be stored.
func (b *bonded) asked() (keys []int64) {
	add := func(is bool, key int64) {
		if is && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	add(b.named, 3)
	add(b.stores && b.names > 1 && !b.creates(), b.names)
	add(b.stores && !b.nonZero && b.names == 0 && (b.holds == 0 || !b.saves), 0)
	add(b.saves && b.isAssigned(), b.holds)
	return keys
}

// isAssigned reports whether the association is another one than was read. If the struct names its key as well, it looks as if it
// was read with it: then a statement that stores the struct's key stores it, and no other does.
func (b *bonded) isAssigned() bool { return b.holds != 0 && b.holds != 1 && b.holds != b.names }

// creates reports whether GORM creates the association. Its key is stored then, whatever the struct names.
func (b *bonded) creates() bool { return b.saves && (b.holds > 3 || b.holds == aNew) }

// mayRefuse reports whether the struct names one row and holds another, or a slice is to get what one of its structs holds. A struct
// that names none looks as if it got what it holds since it was read.
func (b *bonded) mayRefuse() bool {
	return len(b.asked()) > 1 || b.merges && b.holds != 1 || (b.named || b.two) && b.saves && b.names == 0 && b.holds != 0 ||
		b.isAssigned() && (b.names > 1 || b.two || b.named && b.holds != 3)
}

func (b *bonded) run(t testing.TB) {
	t.Helper()
	n := b.w.keys.Add(2) - 1
	for i := range int64(2) {
		b.w.exec(t, "INSERT INTO clerks (id, a, b, land_id, home_id, desk_code, version) VALUES ($1, 10, 20, $2, $2, $3, 5)", n+i, 1+i, code(1+i))
	}
	b.x, b.y = b.read(t, n, true), b.read(t, n+1, true)
	if b.stale {
		b.w.exec(t, "UPDATE clerks SET land_id = 3, home_id = 3, desk_code = 'd3', version = version + 1 WHERE id = $1", n)
	}
	b.bond.setKey(b.x, b.names)
	if b.holds != 1 {
		b.bond.hold(b.x, b.holds)
	}
	was, from := deepCopy(reflect.ValueOf(b.x)).Interface().(*Clerk), b.w.now(t)
	if b.holds == aNew && b.bond.relation == "Desk" {
		b.holds = b.bond.held(b.x)
	}
	base := b.read(t, n, true)
	end := b.scope.run(&cell{ctx: context.Background()}, b.w.dbs[b.config], func(tx *gorm.DB) error {
		b.x.A = written
		b.err = b.write(b, tx, base)
		return b.err
	})
	var changes []change
	for _, one := range b.w.changes(t, from, b.w.now(t)) {
		if one.Writer == "writer" && one.Tab == "clerks" {
			changes = append(changes, one)
		}
	}
	b.judge(t, was, changes, end)
}

func (b *bonded) read(t testing.TB, n int64, whole bool) *Clerk {
	t.Helper()
	c, db := &Clerk{}, b.w.plain
	if whole {
		db = db.Preload("Land").Preload("Home").Preload("Desk")
	}
	must(t, db.First(c, n).Error)
	return c
}

func (b *bonded) judge(t testing.TB, was *Clerk, changes []change, end error) {
	t.Helper()
	x := b.x
	row, other := b.read(t, x.ID, false), b.read(t, x.ID+1, false)
	if other.LandID != 2 || *other.HomeID != 2 || other.DeskCode != "d2" {
		b.report("another row", "it belongs to others now: %+v", other)
	}
	if b.err != nil || b.scope.undone {
		was.A = x.A
		switch {
		case b.err != nil && !b.stale && !b.mayRefuse():
			b.report("refused", "%v", b.err)
		case b.err == nil && b.stale && !b.blind:
			b.report("accepted", "it said nil to a struct that is stale")
		case len(changes) > 0:
			b.report("undone", "%v, %v, and this is stored: %v", b.err, end, &changes[0])
		case b.holds != aNew && b.isSame(was) != "":
			b.report("in memory", "%v, and %s", b.err, b.isSame(was))
		}
		return
	}
	keys, is := b.asked(), b.bond.key(row)
	switch {
	case b.stale && !b.blind:
		b.report("accepted", "it said nil to a struct that is stale: %v", changes)
		return
	case b.stale:
		return
	case len(keys) > 1:
		b.report("accepted", "it was to store %v, and stored %d", keys, is)
	case len(keys) == 1 && is != keys[0] && keys[0] != aNew, len(keys) == 1 && is < 4 && keys[0] == aNew:
		b.report("silent no-op", "it was to store %d, and stored %d", keys[0], is)
	case len(keys) == 0 && is != 1:
		b.report("not asked for", "it stored %d", is)
	}
	for _, one := range bonds {
		if one.relation != b.bond.relation && (one.key(row) != 1 || one.key(x) != 1 || one.held(x) != 1) {
			b.report("not asked for", "%s is %d, in the struct %d with %d", one.column, one.key(row), one.key(x), one.held(x))
		}
	}
	pending := b.isAssigned() && !slices.Contains(keys, b.holds) || b.names != 1 && !slices.Contains(keys, b.names)
	if key, held := b.bond.key(x), b.bond.held(x); !pending && (key != is || held != 0 && held != is) {
		b.report("not fresh", "the row has %d, and the struct %d with %d", is, key, held)
	}
	if x.Version != row.Version {
		b.report("not usable", "it is at version %d, its row at %d", x.Version, row.Version)
		return
	}
	if err := b.w.dbs[b.config].Save(x).Error; !pending && (err != nil || b.bond.key(b.read(t, x.ID, false)) != is) {
		b.report("moved later", "the next Save said %v and made %d of %d", err, b.bond.key(b.read(t, x.ID, false)), is)
	}
}

// isSame says what the struct holds now that it did not hold before.
func (b *bonded) isSame(was *Clerk) string {
	for _, one := range bonds {
		if one.key(was) != one.key(b.x) || one.held(was) != one.held(b.x) {
			return fmt.Sprintf("%s was %d with %d, and is %d with %d", one.column, one.key(was), one.held(was), one.key(b.x), one.held(b.x))
		}
	}
	if was.Version != b.x.Version {
		return fmt.Sprintf("the version was %d, and is %d", was.Version, b.x.Version)
	}
	return ""
}

// TestBelongs crosses statements with what the struct holds of the row that it belongs to, and which foreign key it names. A key is
// stored if somebody asked for it, and no other one.
func TestBelongs(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(seedOf(t), 2))
	around := []string{"implicit", "Transaction, error", "Transaction", "gormlock.Transaction, second attempt"}
	configs := []string{"default", "default", "PrepareStmt", "simple protocol", "SkipDefaultTransaction", "QueryFields"}
	var all []*bonded
	for i := range bondings {
		for j := range bonds {
			for _, holds := range []int64{0, 1, 2, 3, aNew} {
				for names := range int64(3) {
					for _, stale := range []bool{false, true} {
						if untilOf(t).IsZero() && r.IntN(2+5*btoi(stale)) > 0 {
							continue
						}
						all = append(all, &bonded{bonding: &bondings[i], bond: &bonds[j], holds: holds, names: names, stale: stale,
							scope: scopeNamed(around[max(0, r.IntN(len(around)+3)-3)]), config: configs[r.IntN(len(configs))]})
					}
				}
			}
		}
	}
	failed := make(chan string, len(all))
	onWorlds(t, thinned(all), func(w *world, t testing.TB, b *bonded) {
		t.Helper()
		b.w = w
		b.run(t)
		for _, v := range b.found {
			failed <- fmt.Sprintf("%s: %s: %s: %s, %v", v.rule, b.name(), b.code, v.what, b.err)
		}
	})
	close(failed)
	for one := range failed {
		t.Error(one)
	}
	t.Logf("%d cells", len(all))
}

func btoi(is bool) int {
	if is {
		return 1
	}
	return 0
}
