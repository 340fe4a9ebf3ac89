package versions_test

import (
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	pageTag struct {
		ID      int64
		Name    string `gorm:"uniqueIndex"`
		Version int64  `gorm:"not null;default:1" gormlock:"version"`
	}
	pageBook struct {
		ID      int64
		TagID   *int64
		Tag     *pageTag  `gorm:"constraint:-"`
		Tags    []pageTag `gorm:"many2many:page_book_tags;constraint:-"`
		Version int64     `gorm:"not null;default:1" gormlock:"version"`
	}
	ownPart struct {
		ID      int64
		OwnerID int64
		Text    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	ownerOfParts struct {
		ID      int64
		Code    string `gorm:"uniqueIndex"`
		Name    string
		Parts   []ownPart `gorm:"foreignKey:OwnerID;constraint:-"`
		Version int64     `gorm:"not null;default:1" gormlock:"version"`
	}
	refOwner struct {
		ID      int64
		Code    string    `gorm:"uniqueIndex"`
		Parts   []refPart `gorm:"foreignKey:RefCode;references:Code;constraint:-"`
		Version int64     `gorm:"not null;default:1" gormlock:"version"`
	}
	refPart struct {
		ID      int64
		RefCode string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	idleDoc struct {
		ID        int64
		Worker    string
		Amount    int64
		DeletedAt gorm.DeletedAt
		Version   int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	madeOnce struct {
		ID        int64
		Name      string
		Kind      int64     `gorm:"<-:create"`
		CreatedAt time.Time `gorm:"<-:create"`
		Version   int64     `gorm:"not null;default:1" gormlock:"version"`
	}
	hiddenBy struct{ By string }
)

// The version in a map that is in an interface is compared too.
func TestUpdates_ofAMapInAnInterface(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&entry{}})
	stale := staleEntry(t, db) // the row is at 2
	var values any = map[string]any{"text": "mine", "version": 1}
	err := db.Model(&entry{}).Where("id = ?", stale.ID).Updates(&values).Error
	if now := stand.Row[entry](t, db, stale.ID); err == nil || now.Text != "rival" {
		t.Errorf("err %v, row %+v", err, now)
	}
	fresh := stand.Row[entry](t, db, stale.ID)
	values = map[string]any{"text": "mine", "version": 77}
	if err := db.Model(&fresh).Updates(&values).Error; err == nil {
		t.Error("version 77 was not compared")
	}
}

// A second column may get the name of the version without AS.
func TestDoubledColumns_withoutAS(t *testing.T) {
	t.Parallel()
	for _, columns := range []string{"id, text, version, amount version", `id, text, version, amount "version"`, "id, text, version, CASE WHEN amount > 0 THEN amount ELSE version END"} {
		db := stand.Versioned(t, []any{&entry{}})
		mine := entry{Amount: 2, Text: "old"}
		stand.Must(t, db.Create(&mine).Error)
		var e entry
		if db.Raw("SELECT "+columns+" FROM entries WHERE id = ?", mine.ID).Scan(&e).Error != nil {
			continue
		}
		stand.Must(t, db.Model(&entry{}).Where("id = ?", mine.ID).Update("text", "rival").Error)
		e.Text = "mine"
		if err := db.Save(&e).Error; err == nil {
			t.Errorf("%s: overwritten: %+v", columns, stand.Row[entry](t, db, mine.ID))
		}
	}
}

// What RETURNING asks for as text, in a create that ignores versions, or in a soft delete, is the whole row, NULL too.
func TestReturned_textAndNull(t *testing.T) {
	t.Parallel()
	all := clause.Returning{}
	raw := clause.Returning{Columns: []clause.Column{{Name: "id, worker", Raw: true}}}
	for name, do := range map[string]func(db *gorm.DB, d *idleDoc) error{
		"create, text": func(db *gorm.DB, d *idleDoc) error {
			*d = idleDoc{Worker: "worker"}
			return db.Clauses(raw).Create(d).Error
		},
		"create, IgnoreVersion": func(db *gorm.DB, d *idleDoc) error {
			*d = idleDoc{Worker: "worker"}
			return db.Clauses(all, gormlock.IgnoreVersion()).Create(d).Error
		},
		"update, text": func(db *gorm.DB, d *idleDoc) error { return db.Clauses(raw).Model(d).Update("amount", 0).Error },
		"soft delete":  func(db *gorm.DB, d *idleDoc) error { return db.Clauses(all).Delete(d).Error },
	} {
		t.Run(name, func(t *testing.T) {
			db := stand.Versioned(t, []any{&idleDoc{}})
			stand.Must(t, db.Exec(`CREATE FUNCTION idle() RETURNS trigger LANGUAGE plpgsql AS
				$$BEGIN IF NEW.amount = 0 OR NEW.deleted_at IS NOT NULL THEN NEW.worker := NULL; END IF; RETURN NEW; END$$;
				CREATE TRIGGER idle BEFORE INSERT OR UPDATE ON idle_docs FOR EACH ROW EXECUTE FUNCTION idle()`).Error)
			d := idleDoc{Amount: 1, Worker: "worker"}
			stand.Must(t, db.Create(&d).Error)
			stand.Must(t, do(db, &d))
			row := stand.Row[idleDoc](t, db, d.ID)
			d.Amount, d.DeletedAt = 5, gorm.DeletedAt{}
			err := db.Unscoped().Save(&d).Error
			if now := stand.Row[idleDoc](t, db, d.ID); err == nil && now.Worker != row.Worker {
				t.Errorf("the row had %q, and has %q", row.Worker, now.Worker)
			}
		})
	}
}

// What a struct belongs to, or is linked with, must be there by its key, and not only a row with its unique value.
func TestCreate_thatRefersToAKeyOfNobody(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&pageTag{}, &pageBook{}})
	stand.Must(t, db.Exec("ALTER TABLE page_book_tags DROP CONSTRAINT IF EXISTS fk_page_book_tags_f_tag, DROP CONSTRAINT IF EXISTS fk_page_book_tags_f_book").Error)
	stand.Must(t, db.Create(&pageTag{Name: "a"}).Error)
	b := pageBook{}
	stand.Must(t, db.Create(&b).Error)
	for name, err := range map[string]error{
		"belongs to": db.Create(&pageBook{Tag: &pageTag{ID: 55, Name: "a"}}).Error,
		"linked":     db.Create(&pageBook{Tags: []pageTag{{ID: 56, Name: "a"}}}).Error,
		"appended":   db.Model(&b).Association("Tags").Append(&pageTag{ID: 57, Name: "a"}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	var n, m int64
	db.Table("page_book_tags").Where("page_tag_id NOT IN (SELECT id FROM page_tags)").Count(&n)
	db.Table("page_books").Where("tag_id NOT IN (SELECT id FROM page_tags)").Count(&m)
	if n+m > 0 {
		t.Errorf("%d links and %d books refer to no tag", n, m)
	}
}

// Children are stored for no struct that was left out.
func TestCreate_ofChildrenOfWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	t.Run("of a batch", func(t *testing.T) {
		db := stand.Versioned(t, []any{&ownerOfParts{}, &ownPart{}})
		a := ownerOfParts{Code: "a"}
		stand.Must(t, db.Create(&a).Error)
		stand.Must(t, db.Create(&ownerOfParts{Code: "b"}).Error)
		err := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&[]ownerOfParts{
			{ID: a.ID, Code: "a", Parts: []ownPart{{Text: "1"}}}, {Code: "b", Parts: []ownPart{{Text: "2"}}}}).Error
		var n int64
		db.Model(&ownPart{}).Where("owner_id = 0").Count(&n)
		if err == nil || n > 0 {
			t.Errorf("err %v, parts of no row %d", err, n)
		}
	})
	t.Run("of Where", func(t *testing.T) {
		db := stand.Versioned(t, []any{&ownerOfParts{}, &ownPart{}})
		stand.Must(t, db.Create(&ownerOfParts{Code: "a"}).Error)
		err := db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "code"}}, DoUpdates: clause.AssignmentColumns([]string{"name"}),
			Where: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "owner_of_parts.name = 'no'"}}}}).Create(&ownerOfParts{Code: "a", Parts: []ownPart{{Text: "1"}}}).Error
		var n int64
		db.Model(&ownPart{}).Where("owner_id = 0").Count(&n)
		if err == nil || n > 0 {
			t.Errorf("err %v, parts of no row %d", err, n)
		}
	})
}

// A chain that has made a query keeps its conditions, and an upsert has none.
func TestUpsert_ofAUsedChain(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&entry{}})
	e := entry{Amount: 1}
	stand.Must(t, db.Create(&e).Error)
	open := db.Where("amount = 77")
	var rows []entry
	stand.Must(t, open.Find(&rows).Error)
	if err := open.Clauses(clause.OnConflict{UpdateAll: true}).Create(&entry{ID: e.ID, Text: "over"}).Error; err == nil {
		t.Errorf("upsert: %+v", stand.Row[entry](t, db, e.ID))
	}
}

// A form may hold what the row has in a column that is not updated, in whatever type.
func TestForm_withWhatTheRowHas(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&madeOnce{}})
	made := madeOnce{Name: "x", Kind: 3, CreatedAt: time.Now().Truncate(time.Second)}
	stand.Must(t, db.Create(&made).Error)
	kind := int64(3)
	for name, form := range map[string]any{
		"the same time, in UTC": struct {
			Name      string
			CreatedAt time.Time
		}{"y", made.CreatedAt.UTC()},
		"an int": struct {
			Name string
			Kind int
		}{"y", 3},
		"a pointer": struct {
			Name string
			Kind *int64
		}{"y", &kind},
		"left out by its tag": struct {
			hiddenBy `gorm:"-"`
			Name     string
		}{hiddenBy{"me"}, "y"},
		"the struct's own type, the same time": madeOnce{CreatedAt: made.CreatedAt.UTC()},
	} {
		m := stand.Row[madeOnce](t, db, made.ID)
		if err := db.Model(&m).Updates(form).Error; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Children that refer to a unique column belong to the row that is there.
func TestCreate_ofChildrenByAUniqueColumn(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&refOwner{}, &refPart{}})
	stand.Must(t, db.Create(&refOwner{Code: "a"}).Error)
	if err := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&refOwner{Code: "a", Parts: []refPart{{}}}).Error; err != nil {
		t.Error(err)
	}
}

// Where GORM begins no transaction, a scope may return a session.
func TestWrite_inASessionWithoutATransactionOfGORM(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&entry{}})
	e := entry{Amount: 1}
	stand.Must(t, db.Create(&e).Error)
	scope := func(tx *gorm.DB) *gorm.DB { return tx.Where("amount > 0").WithContext(t.Context()) }
	for name, err := range map[string]error{
		"a transaction":          db.Transaction(func(tx *gorm.DB) error { return tx.Scopes(scope).Model(&e).Update("amount", 2).Error }),
		"SkipDefaultTransaction": db.Session(&gorm.Session{SkipDefaultTransaction: true}).Scopes(scope).Model(&e).Update("amount", 3).Error,
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// GORM deletes the children of the struct that Delete is given, by its key.
func TestDelete_ofChildrenOfNobody(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(db *gorm.DB, o *ownerOfParts) error{
		"Model": func(db *gorm.DB, o *ownerOfParts) error {
			return db.Model(o).Select("Parts").Delete(&ownerOfParts{}).Error
		},
		"slice": func(db *gorm.DB, o *ownerOfParts) error {
			return db.Model(o).Select("Parts").Delete(&[]ownerOfParts{}).Error
		},
		"its id": func(db *gorm.DB, o *ownerOfParts) error {
			return db.Select("Parts").Delete(&ownerOfParts{}, o.ID).Error
		},
	} {
		db := stand.Versioned(t, []any{&ownerOfParts{}, &ownPart{}})
		o := ownerOfParts{Code: name, Parts: []ownPart{{Text: "1"}}}
		stand.Must(t, db.Create(&o).Error)
		err := do(db, &o)
		var n int64
		db.Model(&ownPart{}).Where("owner_id = ?", o.ID).Count(&n)
		if err == nil && n > 0 {
			t.Errorf("%s: %d children left of a row that is gone", name, n)
		}
	}
}

type deletedShop struct {
	ID      int64
	Orders  []deletedOrder `gorm:"foreignKey:ShopID"`
	Version int64          `gorm:"not null;default:1" gormlock:"version"`
}

type deletedOrder struct {
	ID, ShopID int64
	Items      []deletedItem `gorm:"foreignKey:OrderID"`
	Version    int64         `gorm:"not null;default:1" gormlock:"version"`
}

type deletedItem struct {
	ID, OrderID int64
	Version     int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A delete of all associations is one of those of its struct, as in GORM. What is asked of those further down is an error.
func TestDelete_ofAllAssociations(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&deletedShop{}, &deletedOrder{}, &deletedItem{}})
	count := func(model any) (n int64) {
		stand.MustDo(t, db.Model(model).Count(&n))
		return n
	}
	shop := deletedShop{Orders: []deletedOrder{{}, {}}}
	stand.MustDo(t, db.Create(&shop))
	stand.MustDo(t, db.Select(clause.Associations).Delete(&shop))
	if shops, orders := count(&deletedShop{}), count(&deletedOrder{}); shops+orders != 0 {
		t.Errorf("%d shops and %d orders are left", shops, orders)
	}
	shop = deletedShop{Orders: []deletedOrder{{Items: []deletedItem{{}}}}}
	stand.MustDo(t, db.Create(&shop))
	if err := db.Select("Orders", "Orders.Items").Delete(&shop).Error; err == nil && count(&deletedItem{}) > 0 {
		t.Error("Orders.Items: the items are left")
	}
}

// Check reads defaults that are one number.
func TestCheck_ofDefaults(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, nil)
	for _, def := range []string{"0.0", "'0'::text::bigint", "-1"} {
		db.Exec("DROP TABLE IF EXISTS entries")
		stand.Must(t, db.Exec("CREATE TABLE entries (id bigserial PRIMARY KEY, amount bigint, text text, version bigint NOT NULL DEFAULT "+def+")").Error)
		if gormlock.Check(db, &entry{}) == nil {
			t.Errorf("DEFAULT %s: no error", def)
		}
	}
}

// So it must if it was read and is gone, and another row has its unique value now.
func TestSave_thatRefersToWhatIsGone(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&pageTag{}, &pageBook{}})
	stand.Must(t, db.Exec("ALTER TABLE page_book_tags DROP CONSTRAINT IF EXISTS fk_page_book_tags_f_tag, DROP CONSTRAINT IF EXISTS fk_page_book_tags_f_book").Error)
	tag, one, two := pageTag{Name: "a"}, pageBook{}, pageBook{}
	for _, x := range []any{&tag, &one, &two} {
		stand.Must(t, db.Create(x).Error)
	}
	read := stand.Row[pageTag](t, db, tag.ID)
	stand.Must(t, db.Delete(&tag).Error)
	stand.Must(t, db.Create(&pageTag{Name: "a"}).Error) // a rival
	copied := read
	one.Tag, two.Tags = &read, []pageTag{copied}
	if err := db.Save(&one).Error; err == nil {
		t.Errorf("belongs to tag %d, which is gone", *stand.Row[pageBook](t, db, one.ID).TagID)
	}
	if err := db.Save(&two).Error; err == nil {
		t.Error("linked with a tag that is gone")
	}
}

// The driver follows pointers when it sends values, and those may lead into the struct that the row is read into.
func TestReturned_whereAValueIsInTheStruct(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&entry{}})
	for name, db := range map[string]*gorm.DB{"": db, "prepared": db.Session(&gorm.Session{PrepareStmt: true})} {
		e := entry{Amount: 1, Text: "old", Version: 1}
		stand.Must(t, db.Create(&e).Error)
		patch := entry{Text: "new", Amount: 1}
		done := db.Clauses(clause.Returning{}).Model(&patch).Where("id = ?", e.ID).Updates(map[string]any{"text": &patch.Text})
		if now := stand.Row[entry](t, db, e.ID); done.Error == nil && now.Text != "new" {
			t.Errorf("%s: %d rows, text %q", name, done.RowsAffected, now.Text)
		}
		patch = entry{Amount: 1}
		done = db.Clauses(clause.Returning{}).Model(&patch).Where("id = ? AND amount = ?", e.ID, &patch.Amount).Update("text", "newer")
		if now := stand.Row[entry](t, db, e.ID); done.Error == nil && now.Text != "newer" {
			t.Errorf("%s: %d rows, text %q", name, done.RowsAffected, now.Text)
		}
		gone := entry{Amount: 1}
		done = db.Clauses(clause.Returning{}).Where("id = ? AND amount = ?", e.ID, &gone.Amount).Delete(&gone)
		if done.Error == nil && done.RowsAffected != 1 {
			t.Errorf("%s: %d rows deleted", name, done.RowsAffected)
		}
	}
}
