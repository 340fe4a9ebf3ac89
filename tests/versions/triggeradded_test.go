package versions_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type lateDeck struct {
	ID    int64
	Cards []lateCard `gorm:"foreignKey:DeckID"`
}

type lateCard struct {
	ID, DeckID int64
	Note       string
	Version    int64 `gorm:"not null;default:1" gormlock:"version"`
}

// other runs a text in the schema of db on a connection that gormlock does not see.
func other(t *testing.T, db *gorm.DB, text string) {
	t.Helper()
	var schema string
	stand.MustDo(t, db.Raw("SELECT current_schema()").Scan(&schema))
	if _, err := pgtest.Conn(t).Exec(t.Context(), `SET search_path TO "`+schema+`"; `+text); err != nil {
		t.Fatal(err)
	}
}

// Another session adds a trigger to a table that gormlock has seen without one. A row that is gone is not stored again all the same.
func TestUpsert_whereATriggerIsAdded(t *testing.T) {
	t.Parallel()
	ways := map[string]func(db *gorm.DB, cards []lateCard) error{
		"Save": func(db *gorm.DB, cards []lateCard) error { return db.Save(&cards).Error },
		"Save in batches": func(db *gorm.DB, cards []lateCard) error {
			return db.Session(&gorm.Session{CreateBatchSize: 1}).Save(&cards).Error
		},
		"Save, ignoring": func(db *gorm.DB, cards []lateCard) error {
			return db.Clauses(gormlock.IgnoreVersion()).Save(&cards).Error
		},
		"UpdateAll": func(db *gorm.DB, cards []lateCard) error {
			return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&cards).Error
		},
		"with new ones": func(db *gorm.DB, cards []lateCard) error {
			return db.Save(&[]lateCard{cards[0], cards[1], {DeckID: 1, Note: "new"}}).Error
		},
		"another parent": func(db *gorm.DB, cards []lateCard) error { return db.Save(&lateDeck{ID: 2, Cards: cards}).Error },
		"saved with parents": func(db *gorm.DB, cards []lateCard) error {
			return db.Session(&gorm.Session{FullSaveAssociations: true}).Save(&lateDeck{ID: 2, Cards: cards}).Error
		},
	}
	kinds := map[string]string{
		"a table": "SELECT 1",
		"a partition": "ALTER TABLE late_cards RENAME TO rest; CREATE TABLE late_cards (LIKE rest INCLUDING ALL) PARTITION BY RANGE (id);" +
			"ALTER TABLE late_cards ATTACH PARTITION rest DEFAULT",
		"a view": "ALTER TABLE late_cards RENAME TO rest; CREATE VIEW late_cards AS TABLE rest; ALTER VIEW late_cards ALTER version SET DEFAULT 1;" +
			"ALTER VIEW late_cards ALTER id SET DEFAULT 77",
	}
	stand.EachMode(t, func(t *testing.T, opts ...pgtest.Option) {
		for kind, ddl := range kinds {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				db := stand.Versioned(t, []any{&lateDeck{}, &lateCard{}}, opts...)
				db.Logger = logger.Discard
				stand.MustDo(t, db.Exec(ddl))
				for _, body := range []string{"new.version := 1", "new.version := new.version + 1000"} {
					for name, write := range ways {
						addTrigger(t, db, kind, body, name, write)
						if name != "Save" && name != "another parent" {
							continue
						}
						addTrigger(t, db, kind, body, name+", in a transaction", func(db *gorm.DB, cards []lateCard) error {
							return db.Transaction(func(tx *gorm.DB) error { return write(tx, cards) })
						})
					}
				}
			})
		}
	})
}

func addTrigger(t *testing.T, db *gorm.DB, kind, body, name string, write func(db *gorm.DB, cards []lateCard) error) {
	t.Helper()
	table := "rest"
	if kind == "a table" {
		table = "late_cards"
	}
	stand.MustDo(t, db.Exec("DROP TRIGGER IF EXISTS late ON "+table+"; TRUNCATE late_decks, "+table+"; SELECT setval('late_cards_id_seq', 100)"))
	stand.MustDo(t, db.Create(&[]lateDeck{{ID: 1}, {ID: 2}}))
	cards := []lateCard{{ID: 1, DeckID: 1, Note: "old"}, {ID: 2, DeckID: 1, Note: "old"}}
	stand.MustDo(t, db.Create(&cards))
	stand.MustDo(t, db.Save(&cards))
	stand.MustDo(t, db.Save(&lateDeck{ID: 1, Cards: cards}))
	other(t, db, "CREATE OR REPLACE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "+body+"; RETURN new; END $$;"+
		"CREATE TRIGGER late BEFORE INSERT ON "+table+" FOR EACH ROW EXECUTE FUNCTION late(); DELETE FROM "+table+" WHERE id = 1")
	cards[0].Note, cards[1].Note = "mine", "mine"
	err := write(db, cards)
	var now []lateCard
	stand.MustDo(t, db.Order("id").Find(&now))
	if !errors.Is(err, gormlock.ErrStale) || len(now) != 1 || now[0].Note != "old" {
		t.Errorf("%s, %s, %s: %v; the rows are %v", kind, body, name, err, now)
	}
}

// Another session makes a table that gormlock has seen one of partitions, or a view. A statement that the server refuses for that is the last one.
func TestUpsert_whereATableIsReplaced(t *testing.T) {
	t.Parallel()
	for kind, ddl := range map[string]string{
		"partitions": "ALTER TABLE late_cards RENAME TO rest; CREATE TABLE late_cards (LIKE rest INCLUDING ALL) PARTITION BY RANGE (id); ALTER TABLE late_cards ATTACH PARTITION rest DEFAULT",
		"a view":     "ALTER TABLE late_cards RENAME TO rest; CREATE VIEW late_cards AS TABLE rest",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&lateCard{}})
			db.Logger = logger.Discard
			cards := []lateCard{{ID: 1, Note: "old"}, {ID: 2, Note: "old"}}
			stand.MustDo(t, db.Create(&cards))
			stand.MustDo(t, db.Save(&cards))
			other(t, db, ddl)
			if err := db.Save(&cards).Error; err != nil && !stand.FromServer(err) {
				t.Fatal(err)
			}
			stand.MustDo(t, db.Save(&cards))
			other(t, db, "DELETE FROM rest WHERE id = 1")
			stand.MustStale(t, db.Save(&cards).Error)
		})
	}
}

type caseDoc struct {
	ID      string `gorm:"primaryKey;default:'K'||floor(random()*1e9)::text"`
	Note    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A trigger writes keys in another way than the structs. A row that is gone is not stored again all the same.
func TestUpsert_whereATriggerSetsTheKey(t *testing.T) {
	t.Parallel()
	stand.EachMode(t, func(t *testing.T, opts ...pgtest.Option) {
		ways := map[string]func(db *gorm.DB, docs []caseDoc) error{
			"Save": func(db *gorm.DB, docs []caseDoc) error { return db.Save(&docs).Error },
			"UpdateAll": func(db *gorm.DB, docs []caseDoc) error {
				return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&docs).Error
			},
		}
		db := stand.Versioned(t, []any{&caseDoc{}}, opts...)
		db.Logger = logger.Discard
		for _, version := range []string{"", "IF TG_OP = 'INSERT' AND new.note = 'mine' THEN new.version := 1; END IF;", "IF TG_OP = 'INSERT' AND new.note = 'mine' THEN new.version := 1000000; END IF;"} {
			stand.MustDo(t, db.Exec("CREATE OR REPLACE FUNCTION small() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN new.id := lower(new.id); "+version+" RETURN new; END $$;"+
				"DROP TRIGGER IF EXISTS small ON case_docs; CREATE TRIGGER small BEFORE INSERT OR UPDATE ON case_docs FOR EACH ROW EXECUTE FUNCTION small()"))
			for name, more := range map[string][]caseDoc{"": nil, "a new key": {{ID: "NEW", Note: "mine"}}, "a key of the server": {{Note: "mine"}}} {
				for _, rival := range []string{"", "wrote", "deleted"} {
					for way := range ways {
						stand.MustDo(t, db.Exec("TRUNCATE case_docs"))
						docs := []caseDoc{{ID: "ABC", Note: "a"}, {ID: "DEF", Note: "b"}}
						stand.MustDo(t, db.Create(&docs))
						switch rival {
						case "wrote":
							stand.MustDo(t, db.Exec("UPDATE case_docs SET note = 'rival', version = 2 WHERE id = 'abc'"))
						case "deleted":
							stand.MustDo(t, db.Exec("DELETE FROM case_docs WHERE id = 'abc'"))
						}
						was := caseRows(t, db)
						docs[0].Note, docs[1].Note = "mine", "mine"
						docs = append(docs, more...)
						err := ways[way](db, docs)
						where := fmt.Sprintf("%q, with %s, %s, a rival %q", version, name, way, rival)
						switch now := caseRows(t, db); {
						case rival != "" || err != nil && !strings.HasPrefix(err.Error(), "gormlock:"):
							if !errors.Is(err, gormlock.ErrStale) || now != was {
								t.Errorf("%s: %v, the rows were %s and are %s", where, err, was, now)
							}
						case err != nil && now != was:
							t.Errorf("%s: %v, the rows were %s and are %s", where, err, was, now)
						case err != nil && len(more) == 0:
							t.Errorf("%s: %v", where, err)
						case err == nil && strings.Contains(now, ",a,"):
							t.Errorf("%s: nothing was written: %s", where, now)
						}
					}
				}
			}
		}
	})
}

// caseRows are the rows of the documents as a text.
func caseRows(t *testing.T, db *gorm.DB) string {
	t.Helper()
	var rows []string
	stand.MustDo(t, db.Raw("SELECT d::text FROM case_docs d ORDER BY 1").Scan(&rows))
	return fmt.Sprint(rows)
}
