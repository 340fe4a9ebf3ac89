package rollbacks_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// mover moves the structs of a slice, writes them, and rolls back, at random.
type mover struct {
	t     *testing.T
	r     *rand.Rand
	list  []stand.Account
	did   []string
	fresh int64
}

func (m *mover) note(format string, args ...any) { m.did = append(m.did, fmt.Sprintf(format, args...)) }

// write writes one struct or all, in one of the ways. A struct that is not fresh is refused, which does no harm.
func (m *mover) write(tx *gorm.DB) {
	if len(m.list) == 0 {
		return
	}
	i := m.r.IntN(len(m.list))
	row := &m.list[i]
	text := "mine " + strconv.Itoa(m.r.IntN(1000))
	var err error
	kind := m.r.IntN(8)
	switch kind {
	case 0:
		row.Balance++
		err = tx.Save(row).Error
	case 1:
		err = tx.Model(row).Update("balance", row.Balance+10).Error
	case 2:
		for i := range m.list {
			m.list[i].Note = text
			m.list[i].Balance++
		}
		err = tx.Save(&m.list).Error
	case 3:
		err = tx.Model(&m.list).Update("balance", 33).Error
	case 4:
		all := make([]*stand.Account, len(m.list))
		for i := range m.list {
			all[i] = &m.list[i]
		}
		slices.Reverse(all)
		err = tx.Save(all).Error
		all[0], all[len(all)-1] = all[len(all)-1], all[0]
	case 5:
		m.fresh++
		*row = stand.Account{ID: m.fresh, Balance: 1}
		err = tx.Create(row).Error
	case 6:
		err = tx.First(&m.list[i], row.ID).Error
	case 7:
		err = tx.Where("id <= 6").Order("id").Find(&m.list).Error
	}
	m.note("write %d of element %d: %v", kind, i, err)
}

// move moves structs within the slice.
func (m *mover) move() {
	n := len(m.list)
	if n < 2 {
		return
	}
	i, j := m.r.IntN(n), m.r.IntN(n)
	switch m.r.IntN(7) {
	case 0:
		m.r.Shuffle(n, func(i, j int) { m.list[i], m.list[j] = m.list[j], m.list[i] })
		m.note("shuffle")
	case 1:
		m.list[i], m.list[j] = m.list[j], m.list[i]
		m.note("swap %d and %d", i, j)
	case 2:
		m.list = append(m.list[:i], m.list[i+1:]...)
		m.note("delete %d, the tail stays", i)
	case 3:
		m.list = slices.Delete(m.list, i, i+1)
		m.note("delete %d", i)
	case 4:
		m.list[i] = m.list[j]
		m.note("copy %d to %d", j, i)
	case 5:
		slices.SortFunc(m.list, func(a, b stand.Account) int { return int(b.ID - a.ID) })
		m.note("sort")
	case 6:
		m.list[i] = stand.Account{}
		m.note("empty %d", i)
	}
}

// some does several of these, also in savepoints.
func (m *mover) some(tx *gorm.DB, depth int) {
	for range 1 + m.r.IntN(5) {
		switch k := m.r.IntN(10); {
		case k < 4:
			m.write(tx)
		case k < 8:
			m.move()
		case depth < 2:
			m.note("savepoint")
			end := error(nil)
			if m.r.IntN(2) == 0 {
				end = errUndo
			}
			_ = tx.Transaction(func(tx *gorm.DB) error {
				m.some(tx, depth+1)
				return end
			})
			m.note("savepoint ended: %v", end)
		}
	}
}

// TestMovedStructs: the caller moves structs within their slice between a write and the rollback. Whatever a struct is and
// wherever it stands, it has no version that was rolled back: a rival who gets to that version is not overwritten.
func TestMovedStructs(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	for seed := range uint64(400) {
		stand.MustDo(t, db.Exec("TRUNCATE accounts"))
		stand.MustDo(t, db.Exec("INSERT INTO accounts (id, balance, note, version) SELECT i, 100, 'n', 1 FROM generate_series(1, 6) i"))
		m := &mover{t: t, r: rand.New(rand.NewPCG(seed, 1)), fresh: 100} //nolint:gosec // a test repeats itself
		stand.MustDo(t, db.Order("id").Find(&m.list))
		whole := m.list[:len(m.list):len(m.list)]
		end := errUndo
		if seed%4 == 0 {
			end = nil
		}
		if err := db.Transaction(func(tx *gorm.DB) error {
			for i := range m.list { // so each place is known to the transaction
				m.list[i].Balance++
				stand.MustDo(t, tx.Save(&m.list[i]))
				m.move2(i)
			}
			m.some(tx, 0)
			return end
		}); end != nil && !errors.Is(err, end) {
			t.Fatal(err)
		} // a stale write may have failed the commit
		rows := map[int64]stand.Account{}
		var stored []stand.Account
		stand.MustDo(t, db.Find(&stored))
		for _, row := range stored {
			rows[row.ID] = row
		}
		for _, list := range [][]stand.Account{m.list, whole} {
			for i := range list {
				held := list[i]
				if held.Version <= 0 || held.ID == 0 {
					continue // its next write is an error, or creates a row
				}
				if row, stored := rows[held.ID]; !stored || held.Version > row.Version {
					t.Fatalf("seed %d, ended by %v: element %d is %+v, the row %+v\n%q", seed, end, i, held, row, m.did)
				}
			}
		}
	}
}

// move2 sometimes moves what is written already.
func (m *mover) move2(n int) {
	if i, j := m.r.IntN(n+1), m.r.IntN(n+1); m.r.IntN(3) == 0 {
		m.list[i], m.list[j] = m.list[j], m.list[i]
		m.note("swap %d and %d", i, j)
	}
}

// TestMovedStructs_areRestored: structs that were only moved are what they were, and the next attempt can write them.
func TestMovedStructs_areRestored(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	for name, c := range map[string]struct {
		write func(tx *gorm.DB, list []stand.Account) error
		move  func(list []stand.Account) []stand.Account
	}{
		"each saved, then sorted":  {saveEach, reversed},
		"each saved, then shifted": {saveEach, shifted},
		"one batch, then sorted":   {saveAll, reversed},
		"one batch, then shifted":  {saveAll, shifted},
		"pointers, then shifted":   {savePointers, shifted},
		"a claim":                  {saveEach, func(list []stand.Account) []stand.Account { return slices.Delete(list, 0, 1) }},
	} {
		t.Run(name, func(t *testing.T) {
			stand.MustDo(t, db.Exec("TRUNCATE accounts"))
			list := []stand.Account{{ID: 1, Balance: 1}, {ID: 2, Balance: 2}, {ID: 3, Balance: 3}}
			stand.MustDo(t, db.Create(&list))
			for _, nested := range []bool{false, true} {
				attempt := func(tx *gorm.DB) error {
					for i := range list {
						list[i].Balance *= 10
					}
					stand.Must(t, c.write(tx, list))
					list = c.move(list)
					return errUndo
				}
				if nested {
					stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
						_ = tx.Transaction(attempt)
						for i := range list {
							stand.Equal(t, "in the outer transaction", list[i].Version, 1)
						}
						return nil
					}))
				} else if err := db.Transaction(attempt); !errors.Is(err, errUndo) {
					t.Fatal(err)
				}
				for i := range list {
					stand.Equal(t, "version", list[i].Version, 1)
				}
			}
			for i := range list {
				stand.Must(t, db.Save(&list[i]).Error)
			}
		})
	}
}

func saveEach(tx *gorm.DB, list []stand.Account) (err error) {
	for i := range list {
		err = errors.Join(err, tx.Save(&list[i]).Error)
	}
	return err
}

func saveAll(tx *gorm.DB, list []stand.Account) error { return tx.Save(&list).Error }

func savePointers(tx *gorm.DB, list []stand.Account) error {
	all := make([]*stand.Account, len(list))
	for i := range list {
		all[i] = &list[i]
	}
	err := tx.Save(all).Error
	clear(all)
	return err
}

func reversed(list []stand.Account) []stand.Account {
	slices.Reverse(list)
	return list
}

func shifted(list []stand.Account) []stand.Account { return append(list[:0], list[1:]...) }

// TestMovedStructs_lost: nobody knows how the transaction ended, so a struct counts as not read, also in the place of one whose
// write was rolled back before.
func TestMovedStructs_lost(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	list := []stand.Account{{ID: 1}, {ID: 2}}
	stand.MustDo(t, db.Create(&list))
	_ = db.Transaction(func(tx *gorm.DB) error {
		_ = tx.Transaction(func(tx *gorm.DB) error {
			stand.MustDo(t, tx.Save(&list[1]))
			return errUndo
		})
		stand.MustDo(t, tx.Save(&list[0]))
		list = reversed(list)
		stand.MustDo(t, tx.Exec("PREPARE TRANSACTION 'moved'")) // others decide on it
		return nil
	})
	stand.MustDo(t, db.Exec("ROLLBACK PREPARED 'moved'"))
	stand.MustBeUnread(t, db.Save(&list[1]).Error)
}

// TestMovedStructs_besideReads: the caller copies two structs over others that the transaction had. One holds a row that was read
// in the transaction: it counts as not read. The other was written in the transaction: it is put back.
func TestMovedStructs_besideReads(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	list := []stand.Account{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4}}
	stand.MustDo(t, db.Create(&list))
	if err := db.Transaction(func(tx *gorm.DB) error {
		stand.Must(t, saveEach(tx, list[:3]))
		stand.MustDo(t, tx.Model(&stand.Account{}).Where("id = 4").Update("balance", 1))
		var read stand.Account
		stand.MustDo(t, tx.First(&read, 4))
		list[0], list[1] = list[2], read
		return errUndo
	}); !errors.Is(err, errUndo) {
		t.Fatal(err)
	}
	stand.Equal(t, "version", list[0].Version, 1)
	stand.Must(t, db.Save(&list[0]).Error)
	stand.MustBeUnread(t, db.Save(&list[1]).Error)
}

// TestMovedStructs_twoOfARow: a rollback takes back in a struct what was written with it, not what was written with another
// struct of the row.
func TestMovedStructs_twoOfARow(t *testing.T) {
	t.Parallel()
	db, older := stand.Stored(t, stand.Account{})
	var newer stand.Account
	if err := db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Save(&older))
		newer = older
		stand.MustDo(t, tx.Model(&newer).Update("balance", 7))
		older.Balance = 7
		return errUndo
	}); !errors.Is(err, errUndo) {
		t.Fatal(err)
	}
	stand.Equal(t, "version of the older", older.Version, 1)
	stand.Equal(t, "balance of the older, which the caller set", older.Balance, 7)
	stand.Equal(t, "balance of the newer", newer.Balance, 0)
}

// TestMovedClaim: the caller drops the first of the rows that it has claimed.
func TestMovedClaim(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	stand.MustDo(t, db.Create(&[]stand.Account{{ID: 1}, {ID: 2}, {ID: 3}}))
	var list []stand.Account
	if err := db.Transaction(func(tx *gorm.DB) (err error) {
		list, err = gormlock.Claim[stand.Account](tx, 3, map[string]any{"balance": 1}, func(q *gorm.DB) *gorm.DB { return q.Where("id > 0").Order("id") })
		stand.Must(t, err)
		list = shifted(list)
		return errUndo
	}); !errors.Is(err, errUndo) {
		t.Fatal(err)
	}
	for i := range list {
		if list[i].Version != stand.Unread {
			t.Errorf("%+v", list[i])
		}
	}
}

// TestMovedChildren: children that came from another parent get its key back wherever they are, and others keep theirs.
func TestMovedChildren(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.LinedOrder{}, &stand.LinedLine{}})
	stand.MustDo(t, db.Create(&[]stand.LinedOrder{{ID: 1, Lines: []stand.LinedLine{{ID: 1}}}, {ID: 2, Lines: []stand.LinedLine{{ID: 2}, {ID: 3}}}, {ID: 3, Lines: []stand.LinedLine{{ID: 4}}}}))
	var lines []stand.LinedLine
	stand.MustDo(t, db.Order("id").Find(&lines))
	order := stand.Row[stand.LinedOrder](t, db, 2)
	order.Lines = lines
	if err := db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Session(&gorm.Session{FullSaveAssociations: true}).Save(&order))
		slices.Reverse(lines)
		return errUndo
	}); !errors.Is(err, errUndo) {
		t.Fatal(err)
	}
	stand.Equal(t, "parents", [4]int64{lines[3].OrderID, lines[2].OrderID, lines[1].OrderID, lines[0].OrderID}, [4]int64{1, 2, 2, 3})
	for _, line := range lines {
		stand.Equal(t, "version", line.Version, 1)
	}
}
