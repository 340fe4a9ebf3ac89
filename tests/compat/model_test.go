package compat_test

import (
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// The models have no tag of gormlock. Between them they have all that GORM can map.

type address struct {
	Street string
	City   string
}

type person struct {
	ID         int64
	Name       string
	Email      *string  `gorm:"uniqueIndex"`
	Age        int      `gorm:"default:18"`
	Score      *float64 `gorm:"type:numeric(10,2)"`
	Active     bool
	Tags       []string `gorm:"serializer:json"`
	Secret     []byte
	Home       address `gorm:"embedded;embeddedPrefix:home_"`
	Full       string  `gorm:"->"`
	CompanyID  *int64
	Company    *company
	Profile    *profile   `gorm:"constraint:OnDelete:CASCADE"`
	Pets       []pet      `gorm:"foreignKey:OwnerID"`
	Languages  []language `gorm:"many2many:person_languages"`
	Remarks    []remark   `gorm:"polymorphic:On"`
	ManagerID  *int64
	Manager    *person
	Team       []person `gorm:"foreignKey:ManagerID"`
	CreatedAt  time.Time
	UpdatedAt  time.Time
	ModifiedMs int64          `gorm:"autoUpdateTime:milli"`
	DeletedAt  gorm.DeletedAt `gorm:"index"`
}

func (person) TableName() string { return "people" }

type company struct {
	ID      int64
	Name    string   `gorm:"unique"`
	Remarks []remark `gorm:"polymorphic:On"`
	Owner   string   `gorm:"default:nobody"`
}

type profile struct {
	ID       int64
	PersonID int64
	Bio      string
}

type pet struct {
	ID      int64
	OwnerID *int64
	Name    string
	Toys    []toy
}

type toy struct {
	ID    int64
	PetID int64
	Name  string
}

type language struct {
	Code string `gorm:"primaryKey"`
	Name string
}

type remark struct {
	ID     int64
	Body   string
	OnID   int64
	OnType string
}

// price has a key of two columns.
type price struct {
	Shop   string `gorm:"primaryKey"`
	Item   string `gorm:"primaryKey"`
	Amount int
}

// diary has every hook there is. What they heard is not stored.
type diary struct {
	ID      int64
	Text    string
	Hooked  string
	Stamped time.Time
	Pages   []page
	heard   []string
}

// page is a child of a model with hooks.
type page struct {
	ID      int64
	DiaryID int64
	Text    string
}

var errRefused = errors.New("the hook refuses")

func (d *diary) hear(hook string, tx *gorm.DB) error {
	d.heard = append(d.heard, hook)
	_, inTransaction := tx.Statement.ConnPool.(gorm.TxCommitter)
	d.heard = append(d.heard, fmt.Sprint("in a transaction ", inTransaction))
	if d.Text == "refused "+hook {
		return errRefused
	}
	return nil
}

func (d *diary) BeforeSave(tx *gorm.DB) error { return d.hear("before save", tx) }
func (d *diary) AfterSave(tx *gorm.DB) error  { return d.hear("after save", tx) }

func (d *diary) BeforeCreate(tx *gorm.DB) error {
	d.Hooked = "before create"
	return d.hear("before create", tx)
}

// AfterCreate writes something else in the transaction of the statement.
func (d *diary) AfterCreate(tx *gorm.DB) error {
	if err := d.hear("after create", tx); err != nil {
		return err
	}
	return tx.Create(&remark{Body: "created " + d.Text, OnID: d.ID, OnType: "diaries"}).Error
}

func (d *diary) BeforeUpdate(tx *gorm.DB) error {
	if tx.Statement.Changed("Text") {
		tx.Statement.SetColumn("Hooked", "before update")
	}
	return d.hear("before update", tx)
}

func (d *diary) AfterUpdate(tx *gorm.DB) error  { return d.hear("after update", tx) }
func (d *diary) BeforeDelete(tx *gorm.DB) error { return d.hear("before delete", tx) }

func (d *diary) AfterDelete(tx *gorm.DB) error {
	if err := d.hear("after delete", tx); err != nil {
		return err
	}
	return tx.Where("on_id = ? AND on_type = ?", d.ID, "diaries").Delete(&remark{}).Error
}

func (d *diary) AfterFind(tx *gorm.DB) error { return d.hear("after find", tx) }

// tables are the models in the order in which they can be created.
func tables() []any {
	return []any{
		&company{}, &person{}, &profile{}, &pet{}, &toy{}, &language{}, &remark{}, &price{}, &diary{}, &page{},
	}
}

// names are the tables of the models, and the join table.
var names = []string{
	"companies", "people", "profiles", "pets", "toys", "languages", "remarks", "prices", "diaries", "pages", "person_languages",
}

// joinTable is the one between people and languages, as GORM migrates it.
const joinTable = `CREATE TABLE person_languages (
	person_id bigint CONSTRAINT fk_person_languages_person REFERENCES people,
	language_code text CONSTRAINT fk_person_languages_language REFERENCES languages,
	PRIMARY KEY (person_id, language_code))`

func pointer[T any](v T) *T { return &v }

// now is what the clock of every session says.
func now() time.Time { return time.Date(2024, 2, 29, 12, 30, 15, 123456000, time.UTC) }

// seed fills the tables with rows that operations find.
func seed(db *gorm.DB) error {
	ada := person{
		Name: "ada", Email: pointer("ada@example.org"), Age: 36, Score: pointer(9.5), Active: true, Tags: []string{"a", "b"},
		Secret: []byte{0, 1, 2}, Home: address{"Lane 1", "London"}, Company: &company{Name: "engine"},
		Profile: &profile{Bio: "first"}, Pets: []pet{{Name: "cat", Toys: []toy{{Name: "ball"}, {Name: "mouse"}}}, {Name: "dog"}},
		Languages: []language{{"en", "English"}, {"fr", "French"}}, Remarks: []remark{{Body: "hello"}},
	}
	if err := db.Create(&ada).Error; err != nil {
		return err
	}
	others := []person{
		{Name: "bob", Email: pointer("bob@example.org"), Age: 20, ManagerID: &ada.ID, CompanyID: ada.CompanyID},
		{Name: "cid", Age: 30, ManagerID: &ada.ID, Languages: []language{{"en", "English"}}},
		{Name: "dot", Age: 40, Active: true, Pets: []pet{{Name: "fish"}}},
		{Name: "gone", DeletedAt: gorm.DeletedAt{Time: now(), Valid: true}},
	}
	if err := db.Create(&others).Error; err != nil {
		return err
	}
	prices := []price{{"a", "milk", 3}, {"a", "bread", 5}, {"b", "milk", 4}}
	diaries := []diary{{Text: "one", Pages: []page{{Text: "p1"}, {Text: "p2"}}}, {Text: "two"}}
	return errors.Join(db.Create(&prices).Error, db.Create(&diaries).Error)
}
