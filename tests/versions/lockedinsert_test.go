package versions_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// locks makes a trigger lock each row that is inserted, as a foreign key of another table to the row does.
func locks(t *testing.T, db *gorm.DB, table string) {
	t.Helper()
	stand.MustDo(t, db.Exec("CREATE OR REPLACE FUNCTION lock_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM FROM "+table+" WHERE id = new.id FOR KEY SHARE; RETURN NULL; END $$;"+
		"DROP TRIGGER IF EXISTS lock_it ON "+table+"; CREATE TRIGGER lock_it AFTER INSERT ON "+table+" FOR EACH ROW EXECUTE FUNCTION lock_it()"))
}

// lockedNode may refer to itself.
type lockedNode struct {
	ID      int64 `gorm:"autoIncrement:false"`
	RootID  int64
	Note    string
	Version time.Time `gormlock:"version"`
}

// The statement that inserts a row may lock it: its xmax then says nothing. A row that others deleted is not stored again all the same.
func TestUpsert_thatLocksWhatItInserts(t *testing.T) {
	t.Parallel()
	for name, ddl := range map[string]string{
		"nothing": "SELECT 1",
		"itself":  "ALTER TABLE locked_nodes ADD FOREIGN KEY (root_id) REFERENCES locked_nodes (id)",
		"a partition": "ALTER TABLE locked_nodes RENAME TO rest; CREATE TABLE locked_nodes (LIKE rest INCLUDING ALL) PARTITION BY RANGE (id);" +
			"ALTER TABLE locked_nodes ATTACH PARTITION rest DEFAULT; ALTER TABLE rest ADD FOREIGN KEY (root_id) REFERENCES rest (id)",
		"a view": "ALTER TABLE locked_nodes RENAME TO rest; ALTER TABLE rest ADD FOREIGN KEY (root_id) REFERENCES rest (id); CREATE VIEW locked_nodes AS TABLE rest",
	} {
		for _, stamps := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				db := stand.Versioned(t, []any{&lockedNode{}})
				stand.MustDo(t, db.Exec(ddl))
				if stamps {
					table := "rest"
					if !db.Migrator().HasTable(table) {
						table = "locked_nodes"
					}
					setStamps(t, db, table)
					locks(t, db, table)
				}
				for _, ignores := range []bool{false, true} {
					for _, wrote := range []bool{false, true} {
						saveLocked(t, db, ignores, wrote)
					}
				}
			})
		}
	}
}

// saveLocked saves two nodes, and saves them again after others have deleted one.
func saveLocked(t *testing.T, db *gorm.DB, ignores, wrote bool) {
	t.Helper()
	stand.MustDo(t, db.Exec("DELETE FROM locked_nodes"))
	stand.MustDo(t, db.Create([]*lockedNode{{ID: 1, RootID: 1}, {ID: 2, RootID: 2}, {ID: 3, RootID: 3}}))
	var nodes []*lockedNode
	stand.MustDo(t, db.Order("id").Find(&nodes))
	save := func(note string) error {
		nodes[0].Note, nodes[1].Note = note, note
		return db.Transaction(func(tx *gorm.DB) error {
			if wrote {
				stand.MustDo(t, tx.Model(nodes[2]).Update("note", note))
			}
			if ignores {
				tx = tx.Clauses(gormlock.IgnoreVersion())
			}
			return tx.Save(nodes[:2]).Error
		})
	}
	stand.Must(t, save("mine"))
	stand.MustDo(t, db.Exec("DELETE FROM locked_nodes WHERE id = 1"))
	stand.MustStale(t, save("again"))
	var left []lockedNode
	if stand.MustDo(t, db.Order("id").Find(&left)); len(left) != 2 || left[0].Note != "mine" {
		t.Errorf("ignores %v, wrote %v: the rows are %v", ignores, wrote, left)
	}
}

// lockedDeck has cards, whose keys the program makes.
type lockedDeck struct {
	ID    int64
	Cards []lockedCard `gorm:"foreignKey:DeckID"`
}

type lockedCard struct {
	ID      int64 `gorm:"autoIncrement:false"`
	DeckID  int64
	Of      int64
	Made    time.Time `gorm:"type:date"`
	Note    string
	Version int64 `gormlock:"version"`
}

// A new child is written again, whatever locks its row, and whatever a trigger gives it. What another row has is not taken for its own.
func TestUpsert_thatLocksNewChildren(t *testing.T) {
	t.Parallel()
	for name, ddl := range map[string]string{
		"nothing": "SELECT 1",
		"itself":  "ALTER TABLE locked_cards ADD FOREIGN KEY (of) REFERENCES locked_cards",
		"a trigger": "CREATE FUNCTION five() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN new.version := 5; RETURN new; END $$;" +
			"CREATE TRIGGER five BEFORE INSERT ON locked_cards FOR EACH ROW EXECUTE FUNCTION five(); ALTER TABLE locked_cards ADD FOREIGN KEY (of) REFERENCES locked_cards",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&lockedDeck{}, &lockedCard{}})
			stand.MustDo(t, db.Exec(ddl))
			deck := lockedDeck{ID: 1, Cards: []lockedCard{{ID: 7, Of: 7, Made: time.Now(), Note: "new"}, {ID: 8, Of: 7, Made: time.Now()}}}
			stand.MustDo(t, db.Create(&deck))
			for i := range deck.Cards {
				deck.Cards[i].Note = "again"
				stand.MustDo(t, db.Save(&deck.Cards[i]))
			}
			other := lockedDeck{ID: 1, Cards: []lockedCard{{ID: 7, Of: 7, Note: "blind"}}}
			stand.MustDo(t, db.Save(&other))
			if err := db.Save(&other.Cards[0]).Error; err == nil {
				t.Error("a child that was not read overwrites its row")
			}
		})
	}
}
