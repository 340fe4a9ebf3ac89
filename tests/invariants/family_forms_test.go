package invariants

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/invariants/internal/models"
)

// branch is a way to write an order and what belongs to it.
type branch struct {
	name string
	code string
	// writes are those whose columns the statement stores: the version of each is compared.
	writes []string
	// links are those whose foreign key, or whose row in a join table, the statement stores or removes.
	links []string
	// blind are tables whose rows are found by a condition, as the API means it.
	blind []string
	set   []string // the caller sets A of these beforehand
	// creates says that a struct which was not read is a new one.
	creates bool
	run     func(h *household, tx *gorm.DB) error
}

func full(tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{FullSaveAssociations: true}) }

// fresh structs that are to be stored.
func (h *household) newLine() *Line         { return &Line{A: written} }
func (h *household) newNote() *Note         { return &Note{A: written} }
func (h *household) newTag() *Tag           { return &Tag{A: written} }
func (h *household) newCustomer() *Customer { return &Customer{A: written} }

func of(tx *gorm.DB, h *household, name string) *gorm.Association {
	return tx.Model(h.order).Association(name)
}

var parent = []string{"order"}

var branches = []branch{
	{name: "Save", writes: parent, set: parent, code: "x.A = 90; tx.Save(&x)", run: func(h *household, tx *gorm.DB) error { return tx.Save(h.order).Error }},
	{name: "Update", writes: parent, code: `tx.Model(&x).Update("a", 90)`, run: func(h *household, tx *gorm.DB) error { return tx.Model(h.order).Update("a", written).Error }},
	{name: "Updates", writes: parent, code: "tx.Model(&x).Updates(Order{A: 90})", run: func(h *household, tx *gorm.DB) error {
		return tx.Model(h.order).Updates(Order{A: written}).Error
	}},
	{name: "Updates, itself", writes: parent, set: parent, code: "x.A = 90; tx.Updates(&x)", run: func(h *household, tx *gorm.DB) error { return tx.Updates(h.order).Error }},
	{name: "Updates with a line", writes: parent, code: `tx.Omit("Lines").Model(&x).Updates(Order{A: 90, Lines: []*Line{l}})`, run: func(h *household, tx *gorm.DB) error {
		return tx.Omit("Lines").Model(h.order).Updates(Order{A: written, Lines: []*Line{h.line}}).Error
	}},
	{name: "Save of a slice", writes: parent, set: parent, code: "x.A = 90; tx.Save([]*Order{&x})", run: func(h *household, tx *gorm.DB) error { return tx.Save([]*Order{h.order}).Error }},
	{name: "Save, Omit", writes: parent, set: parent, code: "x.A = 90; tx.Omit(clause.Associations).Save(&x)", run: func(h *household, tx *gorm.DB) error {
		return tx.Omit(clause.Associations).Save(h.order).Error
	}},
	{name: "Save, lines selected", writes: parent, set: parent, code: `x.A = 90; tx.Select("A", "Lines").Save(&x)`, run: func(h *household, tx *gorm.DB) error {
		return tx.Select("A", "Lines").Save(h.order).Error
	}},
	{name: "upsert", creates: true, writes: parent, set: parent, code: "x.A = 90; tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&x)", run: func(h *household, tx *gorm.DB) error {
		return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(h.order).Error
	}},
	{name: "FullSave, Save", writes: all, set: all, code: "every A = 90; full.Save(&x)", run: func(h *household, tx *gorm.DB) error { return full(tx).Save(h.order).Error }},
	{name: "FullSave, Updates", writes: all, set: all, code: "every A = 90; full.Updates(&x)", run: func(h *household, tx *gorm.DB) error { return full(tx).Updates(h.order).Error }},
	{name: "FullSave, Update", writes: all, set: all[1:], code: `every A = 90; full.Model(&x).Update("a", 90)`, run: func(h *household, tx *gorm.DB) error {
		return full(tx).Model(h.order).Update("a", written).Error
	}},
	{name: "FullSave, slice", writes: all, set: all, code: "every A = 90; full.Save([]*Order{&x})", run: func(h *household, tx *gorm.DB) error {
		return full(tx).Save([]*Order{h.order}).Error
	}},
	{name: "FullSave, upsert", creates: true, writes: all, set: all, code: "every A = 90; full.Clauses(clause.OnConflict{UpdateAll: true}).Create(&x)", run: func(h *household, tx *gorm.DB) error {
		return full(tx).Clauses(clause.OnConflict{UpdateAll: true}).Create(h.order).Error
	}},
	{name: "child moves", links: []string{"line", "note"}, code: "y := Order{Lines: []*Line{l}, Note: n}; tx.Create(&y)", run: func(h *household, tx *gorm.DB) error {
		return tx.Create(&Order{Lines: []*Line{h.line}, Note: h.note}).Error
	}},
	{name: "hook writes, Save", writes: parent, set: parent, blind: []string{"tags"}, code: "x.A = 90; tx.Save(&x) // its BeforeSave writes a row", run: func(h *household, tx *gorm.DB) error {
		return tx.WithContext(models.WithHook(tx.Statement.Context, h.tag.ID)).Omit(clause.Associations).Save(h.order).Error
	}},
	{name: "hook writes, Update", writes: parent, blind: []string{"tags"}, code: `tx.Model(&x).Update("a", 90) // its BeforeSave writes a row`, run: func(h *household, tx *gorm.DB) error {
		return tx.WithContext(models.WithHook(tx.Statement.Context, h.tag.ID)).Omit(clause.Associations).Model(h.order).Update("a", written).Error
	}},

	{name: "Append a line", code: `Lines.Append(&new)`, run: func(h *household, tx *gorm.DB) error { return of(tx, h, "Lines").Append(h.newLine()) }},
	{name: "Append the line", code: `Lines.Append(l)`, links: []string{"line"}, run: func(h *household, tx *gorm.DB) error { return of(tx, h, "Lines").Append(h.line) }},
	{name: "Append a map", code: `Lines.Append(map[string]any{"a": 90})`, run: func(h *household, tx *gorm.DB) error {
		return of(tx, h, "Lines").Append(map[string]any{"a": written})
	}},
	{name: "Append a note", code: `Note.Append(&new)`, blind: []string{"notes"}, run: func(h *household, tx *gorm.DB) error { return of(tx, h, "Note").Append(h.newNote()) }},
	{name: "Append a customer", code: `Customer.Append(&new)`, links: parent, run: func(h *household, tx *gorm.DB) error {
		return of(tx, h, "Customer").Append(h.newCustomer())
	}},
	{name: "Append a tag", code: `Tags.Append(&new)`, run: func(h *household, tx *gorm.DB) error { return of(tx, h, "Tags").Append(h.newTag()) }},
	{name: "Append the tag", code: `Tags.Append(t)`, run: func(h *household, tx *gorm.DB) error { return of(tx, h, "Tags").Append(h.tag) }},
	{name: "Replace lines", code: `Lines.Replace(other)`, links: []string{"other"}, blind: []string{"lines"}, run: func(h *household, tx *gorm.DB) error { return of(tx, h, "Lines").Replace(h.other) }},
	{name: "Replace lines by new ones", code: `Lines.Replace(l, &new)`, links: []string{"line"}, blind: []string{"lines"}, run: func(h *household, tx *gorm.DB) error {
		return of(tx, h, "Lines").Replace(h.line, h.newLine())
	}},
	{name: "Replace the note", code: `Note.Replace(&new)`, blind: []string{"notes"}, run: func(h *household, tx *gorm.DB) error { return of(tx, h, "Note").Replace(h.newNote()) }},
	{name: "Replace the customer", code: `Customer.Replace(&new)`, links: parent, run: func(h *household, tx *gorm.DB) error {
		return of(tx, h, "Customer").Replace(h.newCustomer())
	}},
	{name: "Replace tags", code: `Tags.Replace(&new)`, run: func(h *household, tx *gorm.DB) error { return of(tx, h, "Tags").Replace(h.newTag()) }},
	{name: "Delete a line", code: `Lines.Delete(l)`, blind: []string{"lines"}, run: func(h *household, tx *gorm.DB) error { return of(tx, h, "Lines").Delete(h.line) }},
	{name: "Delete a line for good", code: `Lines.Unscoped().Delete(l)`, blind: []string{"lines"}, run: func(h *household, tx *gorm.DB) error {
		return of(tx, h, "Lines").Unscoped().Delete(h.line)
	}},
	{name: "Delete the customer", code: `Customer.Delete(c)`, links: parent, blind: []string{"orders"}, run: deleteCustomer},
	{name: "Delete a tag", code: `Tags.Delete(t)`, run: func(h *household, tx *gorm.DB) error { return of(tx, h, "Tags").Delete(h.tag) }},
	{name: "Clear lines", code: `Lines.Clear()`, blind: []string{"lines"}, run: func(h *household, tx *gorm.DB) error { return of(tx, h, "Lines").Clear() }},
	{name: "Clear lines for good", code: `Lines.Unscoped().Clear()`, blind: []string{"lines"}, run: func(h *household, tx *gorm.DB) error { return of(tx, h, "Lines").Unscoped().Clear() }},
	{name: "Clear the note", code: `Note.Clear()`, blind: []string{"notes"}, run: func(h *household, tx *gorm.DB) error { return of(tx, h, "Note").Clear() }},
	{name: "Clear the customer", code: `Customer.Clear()`, links: parent, blind: []string{"orders"}, run: func(h *household, tx *gorm.DB) error { return of(tx, h, "Customer").Clear() }},
	{name: "Clear tags", code: `Tags.Clear()`, run: func(h *household, tx *gorm.DB) error { return of(tx, h, "Tags").Clear() }},
	{name: "Delete with lines and note", code: `tx.Select("Lines", "Note").Delete(&x)`, writes: parent, blind: []string{"lines", "notes"}, run: func(h *household, tx *gorm.DB) error {
		return tx.Select("Lines", "Note").Delete(h.order).Error
	}},
	{name: "Delete with all", code: `tx.Select(clause.Associations).Delete(&x)`, writes: parent, blind: []string{"lines", "notes"}, run: func(h *household, tx *gorm.DB) error {
		return tx.Select(clause.Associations).Delete(h.order).Error
	}},
	generics("G creates a line", clause.Association{Association: "Lines", Type: clause.OpCreate, Set: assignA()}),
	generics("G updates lines", clause.Association{Association: "Lines", Type: clause.OpUpdate, Set: assignA()}, "lines"),
	generics("G unlinks lines", clause.Association{Association: "Lines", Type: clause.OpUnlink}, "lines"),
	generics("G deletes lines", clause.Association{Association: "Lines", Type: clause.OpDelete}, "lines"),
	generics("G updates the customer", clause.Association{Association: "Customer", Type: clause.OpUpdate, Set: assignA()}, "customers"),
	// What unlinks a customer, GORM refuses of a model whose hooks have a pointer as receiver.
	generics("G creates a tag", clause.Association{Association: "Tags", Type: clause.OpCreate, Set: assignA()}),
	// What updates or unlinks tags is refused: it would reach those of all orders.
}

// deleteCustomer lets GORM empty the order's foreign key after the statement, which has another struct. docs/faults.md: to
// the order that is as if the caller had assigned it.
func deleteCustomer(h *household, tx *gorm.DB) error {
	err := of(tx, h, "Customer").Delete(h.customer)
	if h.order.CustomerID == nil {
		h.held["order"].assign("CustomerID", (*int64)(nil))
	}
	return err
}

func assignA() []clause.Assignment {
	return []clause.Assignment{{Column: clause.Column{Name: "a"}, Value: written}}
}

// generics is an operation on associations of the generics API: its rows are found by conditions.
func generics(name string, op clause.Association, blind ...string) branch {
	return branch{name: name, blind: blind, code: "gorm.G[Order](tx).Where(id).Set(clause.Association{…}).Update(ctx)", run: func(h *household, tx *gorm.DB) error {
		_, err := gorm.G[Order](tx).Where("id = ?", h.order.ID).Set(op).Update(tx.Statement.Context)
		return err
	}}
}
